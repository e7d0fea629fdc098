import pytest
import torch

from plainformer.contracts import (
    require_floats,
    require_multiple,
    require_one_length,
    require_sizes,
)


def test_a_multiple_passes():
    assert require_multiple(d_model=132, n_heads=12) is None


@pytest.mark.parametrize(
    ("d_model", "n_heads", "nearest"), [(130, 12, 132), (13, 11, 11), (2, 7, 7), (17, 7, 14)]
)
def test_the_error_names_both_sizes_and_the_nearest_that_works(d_model, n_heads, nearest):
    with pytest.raises(ValueError, match="must be a multiple of n_heads") as error:
        require_multiple(d_model=d_model, n_heads=n_heads)
    assert f"got d_model={d_model} and n_heads={n_heads}" in str(error.value)
    assert str(error.value).endswith(f"the nearest d_model that works is {nearest}")
    require_multiple(d_model=nearest, n_heads=n_heads)


@pytest.mark.parametrize(("d_model", "n_heads"), [(64, 0), (0, 4), (64, -4), (-64, 4)])
def test_sizes_below_one_are_refused(d_model, n_heads):
    with pytest.raises(ValueError, match=f"at least 1, got {d_model} and {n_heads}"):
        require_multiple(d_model=d_model, n_heads=n_heads)


def test_sizes_of_one_and_more_pass():
    assert require_sizes(window=1, d_head=64) is None


@pytest.mark.parametrize("size", [0, -3])
def test_the_error_names_the_size_that_is_below_one(size):
    with pytest.raises(ValueError, match=f"d_head must be at least 1, got {size}; nothing fits"):
        require_sizes(window=7, d_head=size)


def test_equal_lengths_pass():
    assert require_one_length(q=7, k=7, v=7) is None


def test_the_error_names_all_lengths():
    says = "^q and k and v must be equally long, got q=7, k=7, v=5; pass those of the same tokens$"
    with pytest.raises(ValueError, match=says):
        require_one_length(q=7, k=7, v=5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_tensors_of_one_dtype_that_holds_fractions_pass(dtype):
    assert require_floats(q=torch.ones(2, dtype=dtype), k=torch.ones(3, dtype=dtype)) is None


@pytest.mark.parametrize("dtypes", [("int64", "int64"), ("float32", "float64"), ("bool", "half")])
def test_the_error_names_all_dtypes(dtypes):
    q, k = (torch.ones(2, dtype=getattr(torch, dtype)) for dtype in dtypes)
    says = rf"^q and k must have one dtype, .*, got q: {q.dtype}, k: {k.dtype}; convert them with"
    with pytest.raises(ValueError, match=says):
        require_floats(q=q, k=k)

import pytest

from plainformer.contracts import require_multiple


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

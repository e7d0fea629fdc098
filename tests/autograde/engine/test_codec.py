"""The codec: what crosses comes out as it went in, and nothing else than our frames is read."""

import collections
import contextlib
import fractions
import json

import hypothesis.strategies as st
import numpy
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from autograde.engine.codec import ENTRIES, HEADER, LENGTHS, BorderError, Decoder, Encoder

QUIET = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def cross(value):
    """There and read back, with no handles."""
    header, data = parts(Encoder().frame(value))
    return Decoder().value(header, data)


def parts(frame: bytes) -> tuple[bytes, bytes]:
    length, _ = LENGTHS.unpack(frame[: LENGTHS.size])
    return frame[LENGTHS.size : LENGTHS.size + length], frame[LENGTHS.size + length :]


def read(tree, buffers: bytes = b"", sizes=(), live=()):
    return Decoder().value(json.dumps([tree, list(live), list(sizes)]).encode(), buffers)


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.fractions()
    | st.decimals(allow_nan=False)
)
keys = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=20,
)


@QUIET
@given(values)
def test_plain_values_come_out_as_they_went_in(value):
    assert repr(cross(value)) == repr(value)


@QUIET
@given(
    st.sampled_from([torch.bool, torch.int8, torch.int64, torch.float16, torch.bfloat16,
                     torch.float32, torch.float64, torch.complex64]),
    st.lists(st.integers(0, 5), max_size=4),
)  # fmt: skip
def test_tensors_keep_type_shape_and_every_bit(dtype, shape):
    tensor = torch.randint(0, 2, shape).to(dtype)
    found = cross(tensor)
    assert found.dtype == dtype
    assert found.shape == tensor.shape
    assert torch.equal(found, tensor)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12).reshape(3, 4).T,
        torch.ones(1).expand(5),
        torch.arange(12)[::5],
        torch.tensor([1.0, float("nan"), -0.0, float("inf")]),
        torch.tensor([1 + 2j]).conj(),
        torch.nn.Parameter(torch.ones(2)).detach(),
        torch.zeros(0, 3),
        torch.tensor(7),
    ],
)
def test_strange_layouts_cross_as_what_they_hold(tensor):
    assert torch.equal(cross(tensor), tensor) or tensor.isnan().any()
    assert numpy.array_equal(cross(tensor).numpy(), tensor.resolve_conj().numpy(), equal_nan=True)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.namedtuple("Pair", "q k")(1, 2), (1, 2)),
        (type("Own", (int,), {"__eq__": lambda *_: True, "__hash__": int.__hash__})(3), 3),
        (bytearray(b"ab"), b"ab"),
        (frozenset([1, "a"]), frozenset([1, "a"])),
        ({2, (3, 4)}, {2, (3, 4)}),
        (slice(1, None), slice(1, None)),
    ],
)
def test_a_subclass_of_a_plain_type_crosses_as_that_type(value, plain):
    found = cross(value)
    assert type(found) is type(plain)
    assert found == plain


def test_torch_and_numpy_types_keep_their_names():
    pair = cross(torch.max(torch.eye(3), dim=1))
    assert type(pair).__name__ == "max"
    assert torch.equal(pair.indices, torch.arange(3))
    assert cross(torch.Size([2, 3])).numel() == 6
    assert cross(torch.float16) is torch.float16
    assert type(cross(numpy.float32(1.5))) is numpy.float32
    assert cross(numpy.arange(6).reshape(2, 3)[:, ::2]).tolist() == [[0, 2], [3, 5]]
    assert cross(fractions.Fraction(1, 3)) * 3 == 1
    generator = torch.Generator().manual_seed(5)
    assert torch.rand(3, generator=cross(generator)).equal(torch.rand(3, generator=generator))


@pytest.mark.parametrize("value", [object(), len, (n for n in ()), object, pytest])
def test_what_is_no_plain_value_does_not_cross_by_itself(value):
    with pytest.raises(BorderError, match="no plain value"):
        cross(value)


def test_what_is_too_large_or_too_deep_is_refused_where_it_is_written():
    nested: list = []
    nested.append(nested)
    with pytest.raises(BorderError, match="deeper"):
        cross(nested)
    with pytest.raises(BorderError, match="too large"):
        cross("a" * (HEADER + 1))
    with pytest.raises(BorderError, match="digits"):
        cross(1 << 100_000)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{}",
        b"[]",
        b"[1, 2, 3]",
        b'[{"a": 1}, [], []]',
        b"[" * 100_000,
        b"[" + b"9" * 5000 + b", [], []]",
        b"\xff\xfe",
        b"[[], [], []]",
        b"[[1], [], []]",
        b'[["nothing"], [], []]',
        b'[["tensor", "float32", [1], 0], [], []]',
        b'[["tensor", "float32", [-1], 0], [], [0]]',
        b'[["tensor", "float32", [1.5], 0], [], [0]]',
        b'[["tensor", "object", [0], 0], [], [0]]',
        b'[["array", "|O", [0], 0], [], [0]]',
        b'[["live", 0], [], []]',
        b'[null, [["tensor", "float32", [2, 2], 0]], [0]]',
        b"[null, [5], [0]]",
        b'[["dict", [[["list", []], 1]]], [], []]',
        b'[["dict", [1]], [], []]',
        b'[["int", "zz"], [], []]',
        b'[["returned", "Tensor", []], [], []]',
        b'[["returned", "__class__", []], [], []]',
        b'[["generator", 0], [], [0]]',
        b'[["size", [["list", []]]], [], []]',
        b'[["handle", 0, "f", true, null], [], []]',
        b"[null, [], [-1]]",
        b"[null, [], [true]]",
        b"[null, [], [1099511627776]]",
    ],
)
def test_headers_of_an_attacker_are_refused_by_rule(header):
    with pytest.raises(BorderError):
        Decoder().value(header, b"")


def test_a_shape_is_compared_with_its_bytes_before_memory_is_taken():
    with pytest.raises(BorderError, match="entries"):
        read(["tensor", "float32", [2**20, 2**20], 0], b"1234", [4])
    with pytest.raises(BorderError, match="announced"):
        read(None, b"1234", [2**40])


def test_a_buffer_is_read_once_however_many_tensors_claim_it():
    tensor = ["tensor", "uint8", [4], 0]
    assert read(["list", [tensor]], b"1234", [4])[0].tolist() == [49, 50, 51, 52]
    with pytest.raises(BorderError, match="used twice"):
        read(["list", [tensor, tensor]], b"1234", [4])


def test_dictionaries_are_capped_since_their_keys_may_collide():
    pairs = [[n * (2**61 - 1), None] for n in range(ENTRIES + 1)]
    with pytest.raises(BorderError, match="entries in dictionaries"):
        read(["dict", pairs])
    with pytest.raises(BorderError, match="entries in dictionaries"):
        read(["list", [["set", list(range(ENTRIES // 2 + 1))]] * 2])


trees = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=5)
    | st.sampled_from(["tensor", "dict", "list", "live", "float32", "<f4", "returned", "max"]),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@QUIET
@given(trees, st.lists(trees, max_size=2), st.lists(st.integers(0, 9), max_size=3), st.binary())
def test_any_tree_is_read_or_refused_and_nothing_else(tree, live, sizes, data):
    with contextlib.suppress(BorderError):
        read(tree, data, sizes, live)


@QUIET
@given(values, st.data())
def test_a_frame_with_one_byte_changed_is_read_or_refused(value, data):
    header, buffers = parts(Encoder().frame(value))
    place = data.draw(st.integers(0, len(header) - 1))
    changed = header[:place] + bytes([data.draw(st.integers(0, 255))]) + header[place + 1 :]
    with contextlib.suppress(BorderError):
        Decoder().value(changed, buffers)

"""Values as plain data, across the border between an answer's process and its judge.

A frame is two lengths, a JSON header and raw bytes: never pickle, never anything that can run.
Every size is capped before memory is taken for it, since the other side may be an attacker. What
is no plain value stays where it is and crosses as a handle; `ship` and `adopt` know those.
"""

import decimal
import fractions
import json
import math
import struct
from collections.abc import Callable, Mapping

import numpy
import torch

LENGTHS = struct.Struct("!IQ")  # bytes of the header, bytes of all buffers
HEADER = 4 * 2**20
BUFFERS = 256 * 2**20
DEPTH = 60
ENTRIES = 4096  # of all dictionaries and sets in a frame: keys that collide cost their square
DIGITS = 2000  # of one integer

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.float16, torch.bfloat16, torch.float32, torch.float64,
        torch.complex64, torch.complex128,
    )
}  # fmt: skip
ARRAYS = {numpy.dtype(letter).str for letter in ("?", *"bhilqBHILQefdFD")}


class BorderError(ValueError):
    """A frame that breaks a rule of the border; the message names the rule."""


class Encoder:
    """Builds one frame. `live` collects the tensors that take part in autograd, in order."""

    def __init__(self, ship: Callable[[object], list] | None = None):
        self._ship = ship or _refuse
        self._buffers: list[bytes] = []
        self.live: list[torch.Tensor] = []

    def frame(self, value) -> bytes:
        """The whole frame. Raises BorderError when the value is too large to cross."""
        tree = self.plain(value)
        live = [[self._tensor(tensor), self._gradient(tensor)] for tensor in self.live]
        header = json.dumps([tree, live, [len(data) for data in self._buffers]]).encode()
        size = sum(map(len, self._buffers))
        if len(header) > HEADER or size > BUFFERS:
            raise BorderError(
                f"a value of {len(header) + size} bytes is too large to be judged "
                f"(at most {BUFFERS // 2**20} MiB of numbers)"
            )
        return b"".join([LENGTHS.pack(len(header), size), header, *self._buffers])

    def plain(self, value, depth: int = 0):
        """The value as a JSON tree; a subclass of a plain type crosses as that type."""
        if depth > DEPTH:
            raise BorderError(f"a value nested deeper than {DEPTH} levels cannot be judged")
        if value is None or value is True or value is False:
            return value
        real = type(value)  # `isinstance` would believe what an object says of its class
        if issubclass(real, torch.Tensor):
            return self._tensor_or_handle(value)
        if issubclass(real, (numpy.ndarray, numpy.generic)):
            return self._array(value)
        for kind, write in WRITERS.items():
            if issubclass(real, kind):
                return write(self, value, depth + 1)
        return self._ship(value)

    def _tensor_or_handle(self, tensor):
        name = str(tensor.dtype).removeprefix("torch.")
        if name not in DTYPES or tensor.layout != torch.strided or tensor.is_meta:
            return self._ship(tensor)
        if tensor.requires_grad:
            self.live.append(tensor)
            return ["live", len(self.live) - 1]
        return self._tensor(tensor)

    def _tensor(self, tensor):
        flat = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
        name = str(tensor.dtype).removeprefix("torch.")
        return ["tensor", name, list(tensor.shape), self._buffer(_bytes_of(flat))]

    def _gradient(self, tensor):
        """What backward() has left at a leaf, say at a parameter of the learner's module."""
        found = tensor.grad if tensor.is_leaf else None
        return None if found is None or found.layout != torch.strided else self._tensor(found)

    def _array(self, array):
        if array.dtype.newbyteorder("=").str not in ARRAYS:
            return self._ship(array)
        kind = "array" if isinstance(array, numpy.ndarray) else "number"
        plain = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        return [kind, plain.dtype.str, list(array.shape), self._buffer(plain.tobytes())]

    def _buffer(self, data: bytes) -> int:
        self._buffers.append(data)
        return len(self._buffers) - 1

    def _integer(self, value, _):
        number = int.__int__(value)
        if abs(number) < 2**53:
            return number
        if number.bit_length() > 3 * DIGITS:
            raise BorderError(f"an integer of more than {DIGITS} digits cannot be judged")
        return ["int", hex(number)]

    def _items(self, kind):
        def write(self, value, depth):
            return [kind, [self.plain(item, depth) for item in value]]

        return write

    def _tuple(self, value, depth):
        items = [self.plain(item, depth) for item in tuple.__iter__(value)]
        if type(value).__module__ == "torch.return_types":
            return ["returned", type(value).__name__, items]
        return ["size" if isinstance(value, torch.Size) else "tuple", items]

    def _mapping(self, value, depth):
        pairs = [[self.plain(k, depth), self.plain(v, depth)] for k, v in value.items()]
        return ["dict", pairs]

    def _generator(self, value, _):
        return ["generator", self._buffer(_bytes_of(value.get_state()))]


def _bytes_of(flat: torch.Tensor) -> bytes:
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def _refuse(value):
    raise BorderError(f"a {type(value).__name__} is no plain value")


WRITERS = {
    int: Encoder._integer,
    float: lambda _, value, __: float.__float__(value),
    str: lambda _, value, __: str.__str__(value),
    tuple: Encoder._tuple,
    list: Encoder._items(None, "list"),
    Mapping: Encoder._mapping,
    set: Encoder._items(None, "set"),
    frozenset: Encoder._items(None, "frozenset"),
    range: lambda self, value, d: [
        "range",
        [self.plain(n, d) for n in (value.start, value.stop, value.step)],
    ],
    slice: lambda self, value, d: [
        "slice",
        [self.plain(n, d) for n in (value.start, value.stop, value.step)],
    ],
    type(...): lambda *_: ["ellipsis"],
    complex: lambda _, value, __: ["complex", value.real, value.imag],
    fractions.Fraction: lambda self, v, d: [
        "fraction",
        self.plain(v.numerator, d),
        self.plain(v.denominator, d),
    ],
    decimal.Decimal: lambda _, value, __: ["decimal", decimal.Decimal.__str__(value)[:DIGITS]],
    (bytes, bytearray): lambda self, value, _: ["bytes", self._buffer(bytes(value))],
    torch.dtype: lambda _, value, __: ["dtype", str(value).removeprefix("torch.")],
    torch.device: lambda _, value, __: ["device", str(value)],
    torch.Generator: Encoder._generator,
}


class Decoder:
    """Reads one frame. Raises BorderError for anything that an honest encoder does not write."""

    def __init__(self, adopt: Callable[[list], object] | None = None):
        self._adopt = adopt or _no_handle
        self._buffers: list[memoryview | None] = []
        self.live: list[torch.Tensor] = []
        self._entries = 0

    def value(self, header: bytes, data, connect: Callable | None = None):
        """The value of a frame; `connect(first word, tensors)` says what live tensors become."""
        tree, live, sizes = self._parse(header)
        self._cut(data, sizes)
        try:
            self.live = [self._leaf(*one) for one in live]
        except Exception as error:
            raise BorderError(f"a tensor that cannot be read: {error}") from None
        if connect and live:
            self.live = connect(_first_word(tree), self.live)
        return self.plain(tree)

    def _parse(self, header: bytes) -> list:
        try:
            parts = json.loads(header, object_pairs_hook=_no_objects)
        except (ValueError, RecursionError, MemoryError) as error:
            raise BorderError(f"the header is no JSON of ours: {error}") from None
        if not (isinstance(parts, list) and len(parts) == 3 and isinstance(parts[1], list)):
            raise BorderError("the header has not its three parts")
        return parts

    def _cut(self, data, sizes) -> None:
        if not isinstance(sizes, list) or not all(_is_count(size) for size in sizes):
            raise BorderError("the sizes of the buffers are no counts")
        if sum(sizes) != len(data):
            raise BorderError(f"{len(data)} bytes came, {sum(sizes)} were announced")
        view, start = memoryview(data), 0
        for size in sizes:
            self._buffers.append(view[start : start + size])
            start += size

    def plain(self, tree, depth: int = 0):
        if depth > DEPTH:
            raise BorderError(f"nested deeper than {DEPTH} levels")
        if tree is None or isinstance(tree, (bool, int, float, str)):
            return tree
        if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
            raise BorderError("a value that has no kind")
        read = READERS.get(tree[0])
        if read is None:
            return self._adopt(tree)
        try:
            return read(self, depth + 1, *tree[1:])
        except BorderError:
            raise
        except Exception as error:  # a wrong count of parts, an unhashable key, a bad number ...
            raise BorderError(f"a {tree[0]} that cannot be read: {type(error).__name__}") from None

    def _all(self, items, depth) -> list:
        if not isinstance(items, list):
            raise BorderError("items that are no list")
        return [self.plain(item, depth) for item in items]

    def _counted(self, items) -> None:
        self._entries += len(items)
        if self._entries > ENTRIES:
            raise BorderError(f"more than {ENTRIES} entries in dictionaries and sets")

    def _dict(self, depth, pairs):
        self._counted(pairs)
        return {self.plain(k, depth): self.plain(v, depth) for k, v in pairs}

    def _set(self, kind):
        def read(self, depth, items):
            self._counted(items)
            return kind(self._all(items, depth))

        return read

    def _tensor(self, parts):
        kind, name, shape, place = parts
        dtype = DTYPES[name]
        data = self._checked(shape, place, torch.empty((), dtype=dtype).element_size())
        if kind != "tensor" or not len(data):
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)

    def _leaf(self, tensor, gradient):
        leaf = self._tensor(tensor)
        leaf.grad = None if gradient is None else self._tensor(gradient)
        return leaf

    def _array(self, _, name, shape, place):
        if name not in ARRAYS:
            raise BorderError("a type of array that does not cross")
        data = self._checked(shape, place, numpy.dtype(name).itemsize)
        return numpy.frombuffer(bytearray(data), dtype=name).reshape(shape)

    def _take(self, place) -> memoryview:
        """A buffer, once: many tensors that share one would be copied to many times its size."""
        data = self._buffers[place]
        self._buffers[place] = None
        if data is None:
            raise BorderError("a buffer that is used twice")
        return data

    def _checked(self, shape, place, size: int) -> memoryview:
        """The buffer of an array, if its length is what the shape says."""
        if not isinstance(shape, list) or len(shape) > 32 or not all(map(_is_count, shape)):
            raise BorderError("a shape that is no list of counts")
        data = self._take(place)
        if math.prod(shape) * size != len(data):
            raise BorderError(f"a shape of {math.prod(shape)} entries for {len(data)} bytes")
        return data

    def _returned(self, depth, name, items):
        kind = getattr(torch.return_types, name)
        if not isinstance(kind, type) or kind.__module__ != "torch.return_types":
            raise BorderError("a result type that torch does not have")
        return kind(self._all(items, depth))

    def _generator(self, _, place):
        state = torch.frombuffer(bytearray(self._take(place)), dtype=torch.uint8)
        generator = torch.Generator()
        generator.set_state(state)
        return generator


def _first_word(tree) -> str | None:
    """What a message is, before the rest of it is built."""
    try:
        return tree[1][0]
    except (TypeError, IndexError, KeyError):
        return None


def _is_count(number) -> bool:
    return type(number) is int and 0 <= number <= 2**40


def _no_objects(_):
    raise BorderError("a JSON object, where only lists are written")


def _no_handle(tree):
    raise BorderError(f"an unknown kind of value: {str(tree[0])[:20]}")


def _integer(self, _, digits: str) -> int:
    if len(digits) > 3 * DIGITS:
        raise BorderError("an integer with too many digits")
    return int(digits, 16)


READERS = {
    "int": _integer,
    "list": lambda self, depth, items: self._all(items, depth),
    "tuple": lambda self, depth, items: tuple(self._all(items, depth)),
    "size": lambda self, depth, items: torch.Size(self._all(items, depth)),
    "returned": Decoder._returned,
    "dict": Decoder._dict,
    "set": Decoder._set(None, set),
    "frozenset": Decoder._set(None, frozenset),
    "range": lambda self, depth, items: range(*self._all(items, depth)),
    "slice": lambda self, depth, items: slice(*self._all(items, depth)),
    "ellipsis": lambda *_: ...,
    "complex": lambda _, __, real, imag: complex(float(real), float(imag)),
    "fraction": lambda self, d, n, m: fractions.Fraction(self.plain(n, d), self.plain(m, d)),
    "decimal": lambda _, __, digits: decimal.Decimal(digits[:DIGITS]),
    "bytes": lambda self, _, place: bytes(self._take(place)),
    "dtype": lambda _, __, name: DTYPES[name],
    "device": lambda _, __, name: torch.device(name),
    "tensor": lambda self, _, *parts: self._tensor(["tensor", *parts]),
    "live": lambda self, _, place: self.live[place],
    "array": Decoder._array,
    "number": lambda self, _, *parts: self._array(_, *parts)[()],
    "generator": Decoder._generator,
}

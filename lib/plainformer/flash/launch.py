"""The Triton kernels, called with tensors: how many programs, with which tiles.

Triton is imported at the first call, not before: without it, everything else here works.
"""

import importlib.util
import os
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from plainformer.flash.semantics import Window

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
WIDEST_FORWARD, WIDEST_BACKWARD = 256, 128  # wider tiles do not fit into the registers


class Blocks(NamedTuple):
    """How a kernel is cut: queries and keys in a tile, warps in a program, loads in flight."""

    queries: int
    keys: int
    warps: int
    stages: int


# (architecture, width of a head, kernel): what the compile report and, where there is one, a sweep
# on the device found. A width that is not listed takes the next one, an architecture the one below.
CONFIGS = {
    ("sm_80", 64, "forward"): Blocks(128, 64, 8, 3),
    ("sm_80", 128, "forward"): Blocks(128, 64, 8, 3),
    ("sm_80", 256, "forward"): Blocks(64, 32, 8, 2),
    ("sm_80", 64, "grad_kv"): Blocks(32, 64, 4, 2),
    ("sm_80", 128, "grad_kv"): Blocks(64, 64, 8, 2),
    ("sm_80", 64, "grad_q"): Blocks(128, 64, 8, 2),
    ("sm_80", 128, "grad_q"): Blocks(64, 64, 8, 2),
    ("sm_90", 64, "forward"): Blocks(128, 64, 4, 3),
    ("sm_90", 128, "forward"): Blocks(128, 128, 8, 2),
    ("sm_90", 256, "forward"): Blocks(128, 64, 8, 2),
    ("sm_90", 64, "grad_kv"): Blocks(64, 64, 4, 1),
    ("sm_90", 128, "grad_kv"): Blocks(64, 64, 8, 2),
    ("sm_90", 64, "grad_q"): Blocks(128, 64, 8, 2),
    ("sm_90", 128, "grad_q"): Blocks(128, 64, 8, 2),
    ("gfx942", 64, "forward"): Blocks(128, 64, 4, 1),
    ("gfx942", 128, "forward"): Blocks(128, 64, 4, 1),
    ("gfx942", 256, "forward"): Blocks(64, 32, 4, 1),
    ("gfx942", 64, "grad_kv"): Blocks(64, 64, 4, 1),
    ("gfx942", 128, "grad_kv"): Blocks(32, 64, 4, 1),
    ("gfx942", 64, "grad_q"): Blocks(128, 64, 4, 1),
    ("gfx942", 128, "grad_q"): Blocks(64, 64, 4, 1),
}
FLOAT32 = Blocks(32, 32, 8, 1)  # no tensor cores without rounding: for correctness, not for speed
DELTA = Blocks(64, 0, 4, 1)  # it meets no keys
INSTALLED = importlib.util.find_spec("triton") is not None  # without importing it


def kernels():
    """The module with the kernels; importing it imports Triton."""
    from plainformer.flash import triton_kernels

    return triton_kernels


def is_interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, on the processor: for tests and for learning."""
    return type(kernels().forward_kernel).__name__ == "InterpretedFunction"


def why_not(q: Tensor, v: Tensor) -> str | None:
    """What keeps the kernels from computing this, in words, or None."""
    if not INSTALLED:
        return "Triton is not installed (Linux: pip install 'plainformer[triton]')"
    if q.dtype not in DTYPES:
        return f"the Triton kernels take float16, bfloat16 and float32, got {q.dtype}"
    if max(q.shape[3], v.shape[3]) > WIDEST_FORWARD:
        return (
            f"the Triton kernels take heads up to {WIDEST_FORWARD} wide, got d_head={q.shape[3]} "
            f"and d_value={v.shape[3]}"
        )
    if q.device.type == "cpu" and not is_interpreted():
        said = "set" if os.environ.get("TRITON_INTERPRET") == "1" else "not set"
        return (
            f"on the processor, Triton runs in its interpreter only, and that needs the variable "
            f"TRITON_INTERPRET=1 before triton is imported (it is {said} now); making an optimiser "
            f"imports triton too"
        )
    if q.device.type not in ("cpu", "cuda"):
        return f"the Triton kernels run on CUDA devices, got {q.device}"
    return None


def blocks_for(arch: str, width: int, kernel: str, dtype: torch.dtype) -> Blocks:
    """The row of the table for an architecture such as sm_90, a head width and a kernel.

    >>> blocks_for("sm_90", 80, "forward", torch.bfloat16)
    Blocks(queries=128, keys=128, warps=8, stages=2)
    """
    if dtype == torch.float32:
        return FLOAT32
    known = sorted({row[0] for row in CONFIGS if _family(row[0]) == _family(arch)}, key=_number)
    older = [row for row in known if _number(row) <= _number(arch)]
    row = (older or known)[-1 if older else 0]
    fitting = sorted(w for a, w, name in CONFIGS if (a, name) == (row, kernel) and w >= width)
    if not fitting:
        raise ValueError(f"{kernel} takes heads up to {WIDEST_BACKWARD} wide, got {width}")
    return CONFIGS[row, fitting[0], kernel]


def _family(arch: str) -> str:
    return arch.rstrip("0123456789abcdef_")


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").removeprefix("gfx"), 16)


def triton_forward(
    q: Float[Tensor, "b h t d_head"],
    k: Float[Tensor, "b g s d_head"],
    v: Float[Tensor, "b g s d_value"],
    *,
    window: Window = (None, None),
    key_lengths: Int[Tensor, " b"] | None = None,
    scale: float,
    blocks: Blocks | None = None,
) -> tuple[Float[Tensor, "b h t d_value"], Float[Tensor, "b h t"]]:
    """Output and log-sum-exp, as `tiled_forward` gives them; `blocks` overrides the table."""
    b, h, t, _ = q.shape
    o = q.new_empty(b, h, t, v.shape[3])
    lse = q.new_empty(b, h, t, dtype=torch.float32)
    blocks = blocks or _blocks(q, v, "forward")
    strides = *q.stride(), *k.stride(), *v.stride()
    sizes = _sizes(q, k, window, scale)
    arguments = q, k, v, o, lse, key_lengths, *strides, *sizes
    programs = b * h * _count(t, blocks.queries)
    _run(kernels().forward_kernel, programs, arguments, _constants(q, v, blocks), blocks)
    return o, lse


def triton_backward(
    q: Float[Tensor, "b h t d_head"],
    k: Float[Tensor, "b g s d_head"],
    v: Float[Tensor, "b g s d_value"],
    o: Float[Tensor, "b h t d_value"],
    lse: Float[Tensor, "b h t"],
    grad_o: Float[Tensor, "b h t d_value"],
    grad_lse: Float[Tensor, "b h t"] | None = None,
    *,
    window: Window = (None, None),
    key_lengths: Int[Tensor, " b"] | None = None,
    scale: float,
    kv_blocks: Blocks | None = None,
    q_blocks: Blocks | None = None,
) -> tuple[
    Float[Tensor, "b h t d_head"], Float[Tensor, "b g s d_head"], Float[Tensor, "b g s d_value"]
]:
    """Gradients for queries, keys and values, as `tiled_backward` gives them."""
    (b, h, t, d_head), (g, s, d_value) = q.shape, v.shape[1:]
    kv_blocks = kv_blocks or _blocks(q, v, "grad_kv")
    q_blocks = q_blocks or _blocks(q, v, "grad_q")
    o, lse = o.contiguous(), lse.contiguous()
    delta = torch.empty_like(lse)
    grad_q = q.new_empty(b, h, t, d_head)
    grad_k, grad_v = k.new_empty(b, g, s, d_head), v.new_empty(b, g, s, d_value)

    lse_strides = (0, 0, 0) if grad_lse is None else grad_lse.stride()
    arguments = o, grad_o, grad_lse, delta, *grad_o.stride(), *lse_strides, h, t
    constants = {"D_VALUE": d_value, "BLOCK_V": padded(d_value), "BLOCK_M": DELTA.queries}
    programs = b * h * _count(t, DELTA.queries)
    _run(kernels().delta_kernel, programs, arguments, constants, DELTA)

    strides = *q.stride(), *k.stride(), *v.stride(), *grad_o.stride()
    rest = key_lengths, *strides, *_sizes(q, k, window, scale)
    inputs = q, k, v, grad_o, lse, delta
    programs, constants = b * g * _count(s, kv_blocks.keys), _constants(q, v, kv_blocks)
    arguments = *inputs, grad_k, grad_v, *rest
    _run(kernels().grad_kv_kernel, programs, arguments, constants, kv_blocks)
    programs, constants = b * h * _count(t, q_blocks.queries), _constants(q, v, q_blocks)
    _run(kernels().grad_q_kernel, programs, (*inputs, grad_q, *rest), constants, q_blocks)
    return grad_q, grad_k, grad_v


def _run(kernel, programs: int, arguments: tuple, constants: dict, blocks: Blocks) -> None:
    if programs:  # Triton refuses an empty grid
        kernel[(programs,)](
            *arguments, **constants, num_warps=blocks.warps, num_stages=blocks.stages
        )


def _sizes(q: Tensor, k: Tensor, window: Window, scale: float) -> tuple:
    h, t, s = q.shape[1], q.shape[2], k.shape[2]
    return h, h // k.shape[1], t, s, scale, *window


def _constants(q: Tensor, v: Tensor, blocks: Blocks) -> dict[str, int]:
    return {
        "D_HEAD": q.shape[3],
        "D_VALUE": v.shape[3],
        "BLOCK_D": padded(q.shape[3]),
        "BLOCK_V": padded(v.shape[3]),
        "BLOCK_M": blocks.queries,
        "BLOCK_N": blocks.keys,
        "UPCAST": q.dtype == torch.bfloat16 and is_interpreted(),
    }


def _blocks(q: Tensor, v: Tensor, kernel: str) -> Blocks:
    widest = max(padded(q.shape[3]), padded(v.shape[3]))
    return blocks_for(architecture(q.device), widest, kernel, q.dtype)


def architecture(device: torch.device) -> str:
    """The name of a device's kind in the table; in the interpreter, any will do."""
    if device.type != "cuda":
        return "sm_90"
    if torch.version.hip:
        return torch.cuda.get_device_properties(device).gcnArchName.split(":")[0]
    return "sm_{}{}".format(*torch.cuda.get_device_capability(device))


def padded(width: int) -> int:
    """The power of two that holds it; the products of tensor cores begin at 16."""
    return max(16, 1 << (width - 1).bit_length())


def _count(whole: int, part: int) -> int:
    return -(-whole // part)

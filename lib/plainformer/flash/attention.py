"""The one function to call: flash attention wherever the tensors are.

Both backends keep one promise: output and log-sum-exp of the scores are all that backward needs. So
forward on one and backward on the other is possible, and used for wide heads.
"""

import inspect
import warnings

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from plainformer.flash.launch import WIDEST_BACKWARD, triton_backward, triton_forward, why_not
from plainformer.flash.semantics import Window, as_window, check_arguments, kept_mask
from plainformer.flash.tiled import tiled_backward, tiled_forward

BACKENDS = ("auto", "triton", "tiles", "sdpa")


def flash_attention(
    q: Float[Tensor, "b h t d_head"],
    k: Float[Tensor, "b g s d_head"],
    v: Float[Tensor, "b g s d_value"],
    *,
    causal: bool = False,
    window: Window | None = None,
    key_lengths: Int[Tensor, " b"] | None = None,
    scale: float | None = None,
    backend: str = "auto",
    return_lse: bool = False,
) -> Float[Tensor, "b h t d_value"] | tuple[Float[Tensor, "b h t d_value"], Float[Tensor, "b h t"]]:
    r"""Exact attention in memory that grows with the length, not its square.

    Query heads `i * h / g` to `(i + 1) * h / g - 1` share key/value head i. The queries are the
    last t of the s positions, for `causal` and for `window=(left, right)`, which lets a query see
    `left` keys before its own and `right` after it, without limit where it says None. PyTorch's
    `is_causal` aligns the first query with the first key instead; that is the same only if t = s.
    Keys from `key_lengths[b]` on are padding, and never read. A query that sees nothing gets zeros.
    The scale is 1 / sqrt(d_head) unless told otherwise.

    `return_lse` adds $\log \sum_j e^{x_j}$ of each query's scores, with a gradient of its own.
    `backend="auto"` takes the Triton kernels on a GPU and tiles in PyTorch elsewhere; ask for
    "triton" or "tiles" to have just that, or for "sdpa" to compare with PyTorch's own function.
    Gradients have none themselves. An inf or NaN in a key or value that is masked, but not padding,
    can still reach those that share its tile: 0 * inf is NaN.
    Source: Dao et al. 2022 (arXiv:2205.14135); Dao 2023 (arXiv:2307.08691).
    Raises ValueError when sizes do not fit together or the backend cannot do what is asked.
    """
    check_arguments(q, k, v, key_lengths, scale)
    window = as_window(causal, window, q.shape[2], k.shape[2])
    scale = q.shape[3] ** -0.5 if scale is None else float(scale)
    backend = _choose(backend, q, k, v, return_lse)
    if backend == "sdpa":
        return _sdpa(q, k, v, window, key_lengths, scale)
    o, lse = _Flash.apply(q, k, v, key_lengths, *window, scale, backend)
    return (o, lse) if return_lse else o


def _choose(backend: str, q: Tensor, k: Tensor, v: Tensor, return_lse: bool) -> str:
    """The backend that does the work, or an error that says why the one asked for cannot."""
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if backend == "sdpa" and return_lse:
        raise ValueError("PyTorch's attention does not return lse; use backend='tiles' or 'auto'")
    if backend in ("tiles", "sdpa"):
        return backend
    if backend == "auto" and q.device.type != "cuda":
        return "tiles"
    reason = why_not(q, v)
    if reason and backend == "triton":
        raise ValueError(f"{reason}; backend='tiles' takes everything")
    if reason:
        warnings.warn(f"{reason}: computed in tiles of PyTorch, slower", stacklevel=3)
        return "tiles"
    wants_gradient = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    widest = max(q.shape[3], v.shape[3])
    if wants_gradient and widest > WIDEST_BACKWARD:
        warnings.warn(
            f"backward, the Triton kernels take heads up to {WIDEST_BACKWARD} wide, got {widest}: "
            f"gradients are computed in tiles of PyTorch, slower",
            stacklevel=3,
        )
    return "triton"


def _sdpa(q, k, v, window: Window, key_lengths, scale: float):
    """PyTorch's attention under an explicit mask, with its own gradients, to compare with."""
    kept = kept_mask(q.shape[2], k.shape[2], window, key_lengths, q.device)
    return F.scaled_dot_product_attention(q, k, v, kept, scale=scale, enable_gqa=True)


class _Flash(torch.autograd.Function):
    """What to save, and how to come back: inputs, outputs, and no matrix of scores."""

    @staticmethod
    def forward(ctx, q, k, v, key_lengths, left, right, scale, backend):
        # Not the operator unless it is needed: its first call imports all of torch.compile.
        forward = forward_operator if torch.compiler.is_compiling() else _forward
        o, lse = forward(q, k, v, key_lengths, left, right, scale, backend)
        ctx.save_for_backward(q, k, v, o, lse, key_lengths)
        ctx.rules = left, right, scale, backend
        return o, lse

    @staticmethod
    def backward(ctx, grad_o, grad_lse):
        *saved, key_lengths = ctx.saved_tensors
        compiling = torch.compiler.is_compiling()
        backward = backward_operator if compiling else _backward
        with torch.no_grad():
            grads = backward(*saved, grad_o, grad_lse, key_lengths, *ctx.rules)
        if torch.is_grad_enabled() and not compiling:  # create_graph=True
            grads = _OnceOnly.apply(*saved[:3], *grads)
        return *grads, None, None, None, None, None


class _OnceOnly(torch.autograd.Function):
    """Gradients that refuse to be differentiated again.

    PyTorch's `once_differentiable` does so only where what comes from above has a gradient itself;
    after `o.sum()`, a second derivative would silently count as zero.
    """

    @staticmethod
    def forward(ctx, q, k, v, *grads):
        return tuple(grad.view_as(grad) for grad in grads)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(
            "flash attention has no second derivative; use backend='sdpa', or "
            "plainformer.attention.grouped_query_attention, where one is needed"
        )


def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_lengths: Tensor | None,
    left: int | None,
    right: int | None,
    scale: float,
    backend: str,
) -> tuple[Tensor, Tensor]:
    rules = {"window": (left, right), "key_lengths": key_lengths, "scale": scale}
    forward = triton_forward if backend == "triton" else tiled_forward
    return forward(q, k, v, **rules)


def _backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    grad_o: Tensor,
    grad_lse: Tensor,
    key_lengths: Tensor | None,
    left: int | None,
    right: int | None,
    scale: float,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor]:
    rules = {"window": (left, right), "key_lengths": key_lengths, "scale": scale}
    narrow = max(q.shape[3], v.shape[3]) <= WIDEST_BACKWARD
    backward = triton_backward if backend == "triton" and narrow else tiled_backward
    return backward(q, k, v, o, lse, grad_o, grad_lse, **rules)


# For `torch.compile`: what goes in and comes out, and never what is inside.
forward_operator = torch.library.custom_op(
    "plainformer::flash_forward", inspect.unwrap(_forward), mutates_args=()
)
backward_operator = torch.library.custom_op(
    "plainformer::flash_backward", inspect.unwrap(_backward), mutates_args=()
)


@forward_operator.register_fake
def _(q, k, v, key_lengths, left, right, scale, backend):
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    return q.new_empty(*q.shape[:3], v.shape[3]), q.new_empty(q.shape[:3], dtype=exact)


@backward_operator.register_fake
def _(q, k, v, o, lse, grad_o, grad_lse, key_lengths, left, right, scale, backend):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)

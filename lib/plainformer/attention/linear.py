"""Attention without a softmax, so that the sum over the keys can be formed once, for all queries.

Memory of the past is one matrix and one vector, however long the past is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from plainformer.contracts import require_floats, require_one_length, require_sizes


def elu_features(x: Float[Tensor, "*batch d_head"]) -> Float[Tensor, "*batch d_head"]:
    r"""$\mathrm{elu}(x) + 1$, a positive number for every number.

    Source: Katharopoulos et al. 2020 (arXiv:2006.16236), sec. 3.2.1.
    >>> elu_features(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.3679, 1.0000, 3.0000])
    """
    # Not F.elu(x) + 1: exp(x) - 1 + 1 is 0 in float32 from x = -17 on.
    return x.clamp(max=0).exp() + F.relu(x)


@dataclass(frozen=True, slots=True)
class LinearState:
    """All that linear attention remembers of the keys and values it has read."""

    kv: Float[Tensor, "*batch d_feature d_value"]  # the sum of feature(k) v^T
    z: Float[Tensor, "*batch d_feature"]  # the sum of feature(k)

    @property
    def nbytes(self) -> int:
        """Bytes of memory, whatever number of tokens was read."""
        return self.kv.nbytes + self.z.nbytes


def linear_state(
    k: Float[Tensor, "*batch s d_head"],
    v: Float[Tensor, "*batch s d_value"],
    *,
    feature_map: Callable = elu_features,
    mask: Bool[Tensor, "*#batch s"] | None = None,
) -> LinearState:
    """What is remembered after all of `k` and `v` were read; `mask` is False for padding.

    Sums are kept in float32 at least: one in bfloat16 stops growing at 256 times what is added.
    Raises ValueError when lengths or dtypes do not fit each other, as all functions here do.
    """
    require_floats(k=k, v=v)
    require_one_length(k=k.shape[-2], v=v.shape[-2])
    if mask is not None:
        require_one_length(k=k.shape[-2], mask=mask.shape[-1])
    features, v = _features(k, feature_map, mask), _at_least_float32(v)
    return LinearState(features.mT @ v, features.sum(dim=-2))


def linear_attention(
    q: Float[Tensor, "*batch t d_head"],
    k: Float[Tensor, "*batch s d_head"],
    v: Float[Tensor, "*batch s d_value"],
    *,
    feature_map: Callable = elu_features,
    mask: Bool[Tensor, "*#batch s"] | None = None,
) -> Float[Tensor, "*batch t d_value"]:
    r"""Average the values, weighted by the product of features; every query sees every key.

    $$ o_i = \frac{\phi(q_i)^\top \sum_j \phi(k_j) v_j^\top}{\phi(q_i)^\top \sum_j \phi(k_j)} $$

    The weights are positive and sum to one if the features are positive. `mask` is False for keys
    that are padding; a query that sees nothing gets zeros.
    Source: Katharopoulos et al. 2020 (arXiv:2006.16236), sec. 3.2.
    """
    require_floats(q=q, k=k)
    state = linear_state(k, v, feature_map=feature_map, mask=mask)
    features = _features(q, feature_map)
    return _divide(features @ state.kv, features @ state.z[..., None]).to(v.dtype)


def causal_linear_attention(
    q: Float[Tensor, "*batch t d_head"],
    k: Float[Tensor, "*batch t d_head"],
    v: Float[Tensor, "*batch t d_value"],
    *,
    feature_map: Callable = elu_features,
    mask: Bool[Tensor, "*#batch t"] | None = None,
    chunk: int = 64,
) -> Float[Tensor, "*batch t d_value"]:
    """Linear attention in which nobody looks ahead: the sum and the normaliser end at the query.

    Within a chunk, scores are formed as usual; what came before the chunk is one sum. So there are
    t / chunk sums of d_feature x d_value numbers, not t, and chunk scores for each query, not t.
    Source: Katharopoulos et al. 2020 (arXiv:2006.16236), sec. 3.3; in chunks as in Yang et al.
    2023 (arXiv:2312.06635), who leave out the normaliser.
    Raises ValueError when `chunk` is below 1, or when lengths or dtypes differ.
    """
    t = q.shape[-2]
    require_sizes(chunk=chunk)
    require_floats(q=q, k=k, v=v)
    require_one_length(q=t, k=k.shape[-2], v=v.shape[-2])  # else a short one would be repeated
    if mask is not None:
        require_one_length(k=t, mask=mask.shape[-1])
    features_q, features_k = _features(q, feature_map), _features(k, feature_map, mask)
    # Filled up after the features were made: the feature of 0 is 1.
    chunk = max(1, min(chunk, t))
    features_q, features_k, values = (
        F.pad(x, (0, 0, 0, -t % chunk)).unflatten(-2, (-1, chunk))  # (*batch, n, chunk, width)
        for x in (features_q, features_k, _at_least_float32(v))
    )
    scores = (features_q @ features_k.mT).tril()
    kv, z = features_k.mT @ values, features_k.sum(dim=-2, keepdim=True)
    kv, z = (F.pad(x.cumsum(dim=-3)[..., :-1, :, :], (0, 0, 0, 0, 1, 0)) for x in (kv, z))
    total = scores @ values + features_q @ kv
    normaliser = scores.sum(dim=-1, keepdim=True) + features_q @ z.mT
    return _divide(total, normaliser).flatten(-3, -2)[..., :t, :].to(v.dtype)


def linear_attention_step(
    state: LinearState | None,
    q: Float[Tensor, "*batch d_head"],
    k: Float[Tensor, "*batch d_head"],
    v: Float[Tensor, "*batch d_value"],
    *,
    feature_map: Callable = elu_features,
) -> tuple[Float[Tensor, "*batch d_value"], LinearState]:
    r"""Read one token, and let it look at all that was read, itself included.

    $$ S_t = S_{t-1} + \phi(k_t) v_t^\top \qquad z_t = z_{t-1} + \phi(k_t) $$

    `None` is the state before the first token. The old state is not changed.
    Source: Katharopoulos et al. 2020 (arXiv:2006.16236), sec. 3.4.
    Paper to code: $S$ is `kv`.
    Raises ValueError when the state is of other sizes than the token.
    """
    require_floats(q=q, k=k)
    new = linear_state(k[..., None, :], v[..., None, :], feature_map=feature_map)
    if state is not None and (state.kv.shape, state.z.shape) != (new.kv.shape, new.z.shape):
        raise ValueError(
            f"the state must be of the sizes (*batch, d_feature, d_value) = {tuple(new.kv.shape)} "
            f"of this token, got {tuple(state.kv.shape)}; go on with the same batch, heads and "
            f"feature_map, or start from None"
        )
    state = new if state is None else LinearState(state.kv + new.kv, state.z + new.z)
    features = _features(q, feature_map)[..., None, :]
    out = _divide(features @ state.kv, features @ state.z[..., None])
    return out[..., 0, :].to(v.dtype), state


def _features(x: Tensor, feature_map: Callable, mask: Tensor | None = None) -> Tensor:
    features = _at_least_float32(feature_map(x))
    return features if mask is None else features.masked_fill(~mask[..., None], 0.0)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _divide(total: Tensor, normaliser: Tensor) -> Tensor:
    """The quotient, and zeros, with gradients of zero, where the normaliser is 0."""
    nothing = normaliser == 0
    return (total / normaliser.masked_fill(nothing, 1.0)).masked_fill(nothing, 0.0)

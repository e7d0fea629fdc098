"""Bringing each token's vector to one scale, or each number to one scale over a batch."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.Module):
    r"""Shift and stretch each vector to mean 0 and variance 1, then to what was learned.

    $$ y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta $$

    Mean and variance are taken over the width of one token, never over tokens or sequences. The
    variance divides by `d_model`, not by `d_model - 1`.
    Source: Ba et al. 2016 (arXiv:1607.06450), sec. 3, which has no epsilon.
    Paper to code: g ($\gamma$) is `weight`, b ($\beta$) is `bias`, H is `d_model`.
    Raises ValueError when `d_model` is below 1 or `eps` is below 0.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        _require_sizes(d_model, eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Norm every vector by itself."""
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        return self.weight * centred * (variance + self.eps).rsqrt() + self.bias


class RMSNorm(nn.Module):
    r"""Stretch each vector until its mean square is 1, then to what was learned; shift nothing.

    $$ y = \gamma \odot \frac{x}{\sqrt{\frac{1}{d} \sum_j x_j^2 + \epsilon}} $$

    The mean square is mean squared plus variance: this is LayerNorm without its bias where a
    vector's mean is 0, and nowhere else. Adding one number to all entries changes what comes out.
    Source: Zhang and Sennrich 2019 (arXiv:1910.07467), eq. 4, with epsilon under the root as in
    Llama; the paper's formula has none, and its code adds one outside.
    Paper to code: g ($\gamma$) is `weight`, n ($d$) is `d_model`.
    Raises ValueError when `d_model` is below 1 or `eps` is below 0.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-6):
        super().__init__()
        _require_sizes(d_model, eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Norm every vector by itself."""
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return self.weight * x * (mean_square + self.eps).rsqrt()


class BatchNorm(nn.Module):
    r"""Shift and stretch each of the `d_model` numbers to mean 0 and variance 1 over the batch.

    $$ y_j = \gamma_j \frac{x_j - \mu_j}{\sqrt{\sigma_j^2 + \epsilon}} + \beta_j, \qquad
       r \leftarrow (1 - m)\, r + m\, b $$

    In training, $\mu_j$ and $\sigma_j^2$ are those of all vectors that were passed, so every vector
    depends on its neighbours, padding too. In evaluation they are the running ones, and each stands
    for itself. `momentum` is the weight of the new batch, as in PyTorch; Keras means that of the
    old. The variance that norms divides by the number of vectors n, the one that is remembered by
    n - 1, as in PyTorch.
    Source: Ioffe and Szegedy 2015 (arXiv:1502.03167), alg. 1; their sec. 3.1 has the n - 1.
    Paper to code: $\gamma$ is `weight`, $\beta$ is `bias`; m ours, `momentum`; r, b are the running
    and the batch's mean or variance.
    Raises ValueError when `d_model` is below 1, `eps` below 0, `momentum` not in [0, 1], or when
    training gets fewer than two vectors.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, momentum: float = 0.1):
        super().__init__()
        _require_sizes(d_model, eps)
        if not 0 <= momentum <= 1:
            raise ValueError(
                f"momentum must be in [0, 1], got {momentum}; it is the weight of the new batch, "
                f"so Keras' 0.99 is 0.01 here"
            )
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_variance", torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Norm every number over all vectors in training, with what was remembered otherwise."""
        mean, variance = self.running_mean, self.running_variance
        if self.training:
            vectors = x.flatten(end_dim=-2) if x.ndim > 1 else x[None]
            if len(vectors) < 2:
                raise ValueError(
                    f"training needs at least two vectors, got {len(vectors)}: the variance of one "
                    f"is 0; use a larger batch, or call eval() first"
                )
            mean, variance = vectors.mean(dim=0), vectors.var(dim=0, correction=0)
            self._remember(mean.detach(), variance.detach(), len(vectors))
        return self.weight * (x - mean) * (variance + self.eps).rsqrt() + self.bias

    def _remember(
        self, mean: Float[Tensor, " d_model"], variance: Float[Tensor, " d_model"], n: int
    ) -> None:
        self.running_mean.lerp_(mean, self.momentum)
        self.running_variance.lerp_(variance * n / (n - 1), self.momentum)


def _require_sizes(d_model: int, eps: float) -> None:
    if d_model < 1 or not eps >= 0:
        raise ValueError(
            f"d_model must be at least 1 and eps at least 0, got {d_model} and {eps}; "
            f"1e-5 is the usual eps"
        )

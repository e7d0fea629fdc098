"""The Transformer of 2017: an encoder that reads, a decoder that writes and looks back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.blocks import (
    PostNormBlock,
    PostNormDecoderBlock,
    PreNormBlock,
    PreNormDecoderBlock,
)
from plainformer.contracts import require_multiple, require_sizes
from plainformer.dropout import Dropout
from plainformer.feed_forward import FeedForward
from plainformer.initialise import xavier_
from plainformer.masks import causal_mask
from plainformer.norms import LayerNorm
from plainformer.positions.sinusoidal import sinusoidal_table


@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerConfig:
    """Sizes of an encoder-decoder. Counts are `n_*`, widths are `d_*`.

    The last three are those of the paper unless one wants to see what becomes of it without them.
    Raises ValueError when a size is below 1, `n_heads` does not divide `d_model`, `d_model` is odd,
    `dropout` is not in [0, 1), or `norm_order` is neither "post" nor "pre".
    """

    vocab_size: int  # of both sides, special symbols included
    n_layers: int  # of the encoder, and as many of the decoder
    n_heads: int
    d_model: int
    d_ff: int
    dropout: float = 0.0  # probability of zeroing, in [0, 1)
    norm_order: Literal["post", "pre"] = "post"
    causal: bool = True  # without: every target position sees the ones it shall predict
    scale_embeddings: bool = True  # without: positions are louder than symbols

    def __post_init__(self):
        require_sizes(vocab_size=self.vocab_size, n_layers=self.n_layers, d_ff=self.d_ff)
        require_multiple(d_model=self.d_model, n_heads=self.n_heads)
        require_multiple(d_model=self.d_model, two=2)  # sines and cosines come in pairs
        if self.norm_order not in ("post", "pre"):
            raise ValueError(
                f"norm_order must be 'post' or 'pre', got {self.norm_order!r}; "
                f"the paper has 'post': the sum is normed"
            )
        Dropout(self.dropout)  # says what is wrong with it


DEBUG = TransformerConfig(vocab_size=13, n_layers=2, n_heads=3, d_model=18, d_ff=11)
DATES = TransformerConfig(vocab_size=124, n_layers=2, n_heads=4, d_model=64, d_ff=128)
BASE = TransformerConfig(
    vocab_size=37000, n_layers=6, n_heads=8, d_model=512, d_ff=2048, dropout=0.1
)
BIG = TransformerConfig(
    vocab_size=37000, n_layers=6, n_heads=16, d_model=1024, d_ff=4096, dropout=0.3
)


class Transformer(nn.Module):
    r"""Encoder and decoder, with one table of symbols for both and for the read-out.

    $$ x_i = \sqrt{d_{model}}\, E_{id_i} + PE_i, \qquad z_t = E\, y_t $$

    The read-out has no weights of its own: the logits are products with the rows of the table E.
    Projections of attention have no biases, feed-forward layers have them.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), sec. 3; sec. 5.4 for where dropout stands. The
    initial weights are ours: Xavier's, and a standard deviation of one over the root of `d_model`
    in the table, so that symbols come out with variance 1.
    With a `generator`, that one decides over the initial weights and dropout.
    """

    def __init__(self, config: TransformerConfig, *, generator: torch.Generator | None = None):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embed.weight, std=config.d_model**-0.5, generator=generator)
        self.dropout = Dropout(config.dropout, generator)
        post = config.norm_order == "post"
        encodes, decodes = (
            (PostNormBlock, PostNormDecoderBlock) if post else (PreNormBlock, PreNormDecoderBlock)
        )
        self.encoder, self.decoder = (
            nn.ModuleList(self._block(kind, n_looks) for _ in range(config.n_layers))
            for kind, n_looks in ((encodes, 1), (decodes, 2))
        )
        self.encoder_norm, self.decoder_norm = (
            nn.Identity() if post else LayerNorm(config.d_model) for _ in range(2)
        )
        xavier_(self, generator=generator)

    def _block(self, kind: Callable, n_looks: int) -> nn.Module:
        c = self.config
        looks = [MultiHeadAttention(c.d_model, c.n_heads, bias=False) for _ in range(n_looks)]
        feed_forward = FeedForward(c.d_model, c.d_ff, F.relu)
        return kind(c.d_model, *looks, feed_forward, dropout=self.dropout)

    def forward(
        self,
        source: Int[Tensor, "b s"],
        shifted: Int[Tensor, "b t"],
        sees: Bool[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b t vocab"]:
        """The logits of every target symbol at once, when `shifted` holds the ones before.

        `sees` is True at the real positions of the source; without it, all are.
        """
        return self.decode(shifted, self.encode(source, sees), sees)

    def encode(
        self, source: Int[Tensor, "b s"], sees: Bool[Tensor, "b s"] | None = None
    ) -> Float[Tensor, "b s d_model"]:
        """The memory: every real source position looks at all of them."""
        x = self._embedded(source)
        for block in self.encoder:
            x = block(x, mask=_for_keys(sees))
        return self.encoder_norm(x)

    def decode(
        self,
        shifted: Int[Tensor, "b t"],
        memory: Float[Tensor, "b s d_model"],
        sees: Bool[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b t vocab"]:
        """The logits at every target position, which looks back at its like and at the memory."""
        x = self._embedded(shifted)
        ahead = causal_mask(shifted.shape[1]).to(x.device) if self.config.causal else None
        for block in self.decoder:
            x = block(x, memory, mask=ahead, memory_mask=_for_keys(sees))
        return self.decoder_norm(x) @ self.embed.weight.T

    @torch.no_grad()
    def continuation(
        self, source: Int[Tensor, "b s"], sees: Bool[Tensor, "b s"] | None = None
    ) -> Callable[[Int[Tensor, "b t"]], Float[Tensor, "b vocab"]]:
        """A function from what was written so far to the logits of what comes next.

        The source is read once. A source of one row serves any number of continuations.
        """
        memory = self.encode(source, sees)

        def next_logits(written: Int[Tensor, "b t"]) -> Float[Tensor, "b vocab"]:
            rows = memory, sees
            if len(memory) == 1:
                rows = (x if x is None else x.expand(len(written), *x.shape[1:]) for x in rows)
            return self.decode(written, *rows)[:, -1]

        return next_logits

    def _embedded(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t d_model"]:
        x = self.embed(ids)
        if self.config.scale_embeddings:
            x = x * self.config.d_model**0.5
        positions = torch.arange(ids.shape[1], device=ids.device)
        table = sinusoidal_table(positions, self.config.d_model, dtype=x.dtype)
        return self.dropout(x + table)


def _for_keys(sees: Bool[Tensor, "b s"] | None) -> Bool[Tensor, "b 1 s"] | None:
    return None if sees is None else sees[:, None]

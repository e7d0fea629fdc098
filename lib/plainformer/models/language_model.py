"""A small language model whose way of telling positions is put in from outside.

For experiments in which all but the positions stays the same. The published decoders have files of
their own.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from plainformer.attention.grouped_query import GroupedQueryAttention
from plainformer.blocks import PreNormBlock
from plainformer.feed_forward import FeedForward
from plainformer.masks import causal_mask
from plainformer.norms import LayerNorm


class LanguageModel(nn.Module):
    """Pre-norm blocks between an embedding and a read-out that has weights of its own.

    `table(positions)` gives the vectors that are added to the embeddings, one for each position:
    an `nn.Embedding`, or `partial(sinusoidal_table, d_model=...)`. `rotary` and `position_bias` are
    those of `GroupedQueryAttention`; one of each serves all layers, as in Llama and in T5. Without
    any of the three, positions show in nothing but the causal mask; with `causal=False`, in nothing
    at all.
    Raises ValueError when `n_layers` is below 1, or as the parts do.
    """

    def __init__(
        self,
        vocab: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        *,
        table: Callable | None = None,
        rotary: Callable | None = None,
        position_bias: Callable | None = None,
        causal: bool = True,
    ):
        super().__init__()
        if vocab < 1 or n_layers < 1:
            raise ValueError(
                f"vocab and n_layers must be at least 1, got {vocab} and {n_layers}; "
                f"two layers are enough for most small experiments"
            )
        self.table, self.causal = table, causal
        self.embed = nn.Embedding(vocab, d_model)
        how = {"bias": True, "rotary": rotary, "position_bias": position_bias}
        self.blocks = nn.ModuleList(
            PreNormBlock(
                d_model,
                GroupedQueryAttention(d_model, n_heads, n_heads, **how),
                FeedForward(d_model, d_ff),
            )
            for _ in range(n_layers)
        )
        self.norm = LayerNorm(d_model)
        self.readout = nn.Linear(d_model, vocab)

    def forward(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t vocab"]:
        """The logits at every position: of the next token, where the model was trained so."""
        x = self.embed(ids)
        positions = torch.arange(ids.shape[1], device=ids.device)
        if self.table is not None:
            x = x + self.table(positions)
        mask = causal_mask(ids.shape[1]).to(ids.device) if self.causal else None
        for block in self.blocks:
            x = block(x, mask=mask)
        return self.readout(self.norm(x))

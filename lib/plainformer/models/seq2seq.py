"""From sequence to sequence with recurrent networks: one fixed vector, or a look back each step.

Three models share an encoder and a way of being called, and differ in what the decoder gets to see.
All are smaller than those of the papers: one layer, one direction, GRU cells, a linear read-out.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Words = Int[Tensor, "b s"]
Fed = Int[Tensor, "b t"]  # what the decoder is fed: the target one step late, behind a start symbol
Sees = Bool[Tensor, "b s"] | None  # True = a real source position; None = all are
Walk = tuple[Float[Tensor, "b t d_state"], Float[Tensor, "b t s"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Seq2SeqConfig:
    """Sizes of an encoder-decoder made of two recurrent networks. Widths are `d_*`."""

    vocab_size: int  # of both sides, the start symbol included
    d_model: int  # width of a symbol
    d_state: int  # width of a recurrent state, encoder and decoder alike


DEBUG = Seq2SeqConfig(vocab_size=27, d_model=8, d_state=16)


def additive_scores(
    queries: Float[Tensor, "*batch t d_query"],
    memory: Float[Tensor, "*batch s d_memory"],
    w_query: Float[Tensor, "d_query d_score"],
    w_memory: Float[Tensor, "d_memory d_score"],
    v: Float[Tensor, " d_score"],
) -> Float[Tensor, "*batch t s"]:
    r"""How well each query fits each source state, by a small network with one hidden layer.

    $$ e_{t,i} = v^\top \tanh(W q_t + U h_i) $$

    Source: Bahdanau et al. 2015 (arXiv:1409.0473), appendix A.1.2, where the query is the previous
    decoder state. Paper to code: $W_a$, $U_a$, $v_a$ are `w_query.T`, `w_memory.T`, `v`.
    """
    hidden = torch.tanh((queries @ w_query)[..., :, None, :] + (memory @ w_memory)[..., None, :, :])
    return hidden @ v


def multiplicative_scores(
    queries: Float[Tensor, "*batch t d_query"],
    memory: Float[Tensor, "*batch s d_memory"],
    w: Float[Tensor, "d_query d_memory"] | None = None,
) -> Float[Tensor, "*batch t s"]:
    """How well each query fits each source state, by a product: `general` with `w`, else `dot`.

    Source: Luong et al. 2015 (arXiv:1508.04025), sec. 3.1, where the query is the new decoder
    state. Without `w`, the two widths must be equal.
    """
    return (queries if w is None else queries @ w) @ memory.mT


def alignment(
    scores: Float[Tensor, "*batch t s"], sees: Bool[Tensor, "*#batch s"] | None = None
) -> Float[Tensor, "*batch t s"]:
    """Turn scores into shares: each row sums to one; padding, where `sees` is False, gets 0."""
    if sees is None:
        return scores.softmax(dim=-1)
    sees = sees[..., None, :]
    # A finite floor, not -inf: a source without any real position would give NaN.
    scores = scores.masked_fill(~sees, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~sees, 0.0)


class FixedVectorSeq2Seq(nn.Module):
    """The last encoder state is all that the decoder gets: at its start, and again at every step.

    Source: Cho et al. 2014 (arXiv:1406.1078), which feeds the vector at every step too, with more
    layers in between; the decoder of Sutskever et al. 2014 (arXiv:1409.3215) only starts from it.
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = nn.GRU(config.d_model, config.d_state, batch_first=True)
        self.decoder = nn.GRU(config.d_model + config.d_state, config.d_state, batch_first=True)
        self.readout = nn.Linear(config.d_state, config.vocab_size)

    def forward(self, source: Words, shifted: Fed, sees: Sees = None) -> Float[Tensor, "b t vocab"]:
        """The logits of every next symbol, when `shifted` holds the ones before."""
        return self.readout(self.walk(source, shifted, sees)[0])

    def encode(
        self, source: Words, sees: Sees = None
    ) -> tuple[Float[Tensor, "b s d_state"], Int[Tensor, " b"]]:
        """The state after each source symbol, and the place of the last real one."""
        memory, _ = self.encoder(self.embed(source))
        if sees is None:
            sees = torch.ones_like(source, dtype=torch.bool)
        # Real symbols stand first, and the encoder reads forwards: padding cannot reach them.
        return memory, sees.sum(dim=-1) - 1

    def walk(self, source: Words, shifted: Fed, sees: Sees = None) -> Walk:
        """The states to read out, and where each step looked: here always at the last symbol."""
        memory, last = self.encode(source, sees)
        weights = F.one_hot(last, memory.shape[1]).to(memory.dtype)[:, None]
        weights = weights.expand(-1, shifted.shape[1], -1)
        found = weights @ memory
        start = memory[torch.arange(len(memory)), last]
        states, _ = self.decoder(torch.cat([self.embed(shifted), found], dim=-1), start[None])
        return states, weights


class AdditiveSeq2Seq(FixedVectorSeq2Seq):
    r"""Before each step the decoder's *previous* state looks back at all encoder states.

    $$ s_t = f(s_{t-1}, [y_{t-1}; c_t]), \quad c_t = \sum_i \alpha_{t,i} h_i $$

    Source: Bahdanau et al. 2015 (arXiv:1409.0473), sec. 3, with an encoder that reads forwards
    only, the encoder's last state to start from, and a read-out of the new state alone.
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__(config)
        self.decoder = nn.GRUCell(config.d_model + config.d_state, config.d_state)
        self.query_proj = nn.Linear(config.d_state, config.d_state, bias=False)
        self.memory_proj = nn.Linear(config.d_state, config.d_state, bias=False)
        self.score_proj = nn.Linear(config.d_state, 1, bias=False)

    def walk(self, source: Words, shifted: Fed, sees: Sees = None) -> Walk:
        """The decoder's states, and where each step looked before it was taken."""
        memory, last = self.encode(source, sees)
        state = memory[torch.arange(len(memory)), last]
        offered = self.memory_proj(memory)  # the same at every step, so computed once
        states, rows = [], []
        for symbol in self.embed(shifted).unbind(dim=1):
            hidden = torch.tanh(self.query_proj(state)[:, None] + offered)
            weights = alignment(self.score_proj(hidden).mT, sees)  # b 1 s
            found = (weights @ memory)[:, 0]
            state = self.decoder(torch.cat([symbol, found], dim=-1), state)
            states.append(state)
            rows.append(weights)
        return torch.stack(states, dim=1), torch.cat(rows, dim=1)


class MultiplicativeSeq2Seq(FixedVectorSeq2Seq):
    r"""After each step the decoder's *new* state looks back; what it finds joins the read-out.

    $$ \tilde s_t = \tanh(W_c [c_t; s_t]) $$

    What is found never reaches the next state, so all steps can look back at once.
    Source: Luong et al. 2015 (arXiv:1508.04025), sec. 3.1: global attention with the `general`
    score, without their input feeding.
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__(config)
        self.decoder = nn.GRU(config.d_model, config.d_state, batch_first=True)
        self.query_proj = nn.Linear(config.d_state, config.d_state, bias=False)
        self.found_proj = nn.Linear(2 * config.d_state, config.d_state, bias=False)

    def walk(self, source: Words, shifted: Fed, sees: Sees = None) -> Walk:
        """The states to read out, and where each step looked after it was taken."""
        memory, last = self.encode(source, sees)
        start = memory[torch.arange(len(memory)), last]
        states, _ = self.decoder(self.embed(shifted), start[None])
        weights = alignment(multiplicative_scores(self.query_proj(states), memory), sees)
        found = torch.cat([weights @ memory, states], dim=-1)
        return torch.tanh(self.found_proj(found)), weights

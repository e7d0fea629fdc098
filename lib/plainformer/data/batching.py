"""From texts of many lengths to tensors of one."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from plainformer.tokenizers.chars import CharTokenizer

Seq2SeqBatch = tuple[
    tuple[Int[Tensor, "b s"], Int[Tensor, "b t"], Bool[Tensor, "b s"]], Int[Tensor, "b t"]
]


def pad(
    sequences: Sequence[Sequence[int]], pad_id: int
) -> tuple[Int[Tensor, "b s"], Bool[Tensor, "b s"]]:
    """Fill all up to the longest, at the end; the second tensor is True where something is real.

    Raises ValueError when there is no sequence.
    >>> ids, sees = pad([[7, 8, 9], [7]], pad_id=0)
    >>> ids.tolist(), sees.int().tolist()
    ([[7, 8, 9], [7, 0, 0]], [[1, 1, 1], [1, 0, 0]])
    """
    if not sequences:
        raise ValueError("a batch must hold at least one sequence, got 0; leave empty batches out")
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    sees = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.full(sees.shape, pad_id)
    ids[sees] = torch.tensor([i for sequence in sequences for i in sequence], dtype=torch.long)
    return ids, sees


def shift_right(targets: Int[Tensor, "*batch t"], start_id: int) -> Int[Tensor, "*batch t"]:
    """What a decoder is fed: the start symbol, then the targets, of which the last falls off.

    At every position stands what was right one position earlier, so that position i may be asked
    for target i. Shifting twice would ask it for the one after.
    >>> shift_right(torch.tensor([[7, 8, 9]]), start_id=1)
    tensor([[1, 7, 8]])
    """
    shifted = targets.roll(1, dims=-1)
    shifted[..., 0] = start_id
    return shifted


def text_pairs(pairs: Sequence[tuple[str, str]], chars: CharTokenizer) -> Seq2SeqBatch:
    """Make a batch of (source, target) texts: (source, shifted, sees), and the targets.

    A target ends with END, then comes PAD; what the decoder is fed starts with START. `sees` is
    True at the real positions of the source.
    """
    source, sees = pad([chars.encode(source) for source, _ in pairs], chars.PAD)
    targets, _ = pad([[*chars.encode(target), chars.END] for _, target in pairs], chars.PAD)
    return (source, shift_right(targets, chars.START), sees), targets

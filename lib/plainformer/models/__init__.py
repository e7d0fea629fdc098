"""Whole models, one file each."""

from plainformer.models.language_model import LanguageModel
from plainformer.models.seq2seq import (
    AdditiveSeq2Seq,
    FixedVectorSeq2Seq,
    MultiplicativeSeq2Seq,
    Seq2SeqConfig,
    additive_scores,
    alignment,
    multiplicative_scores,
)

__all__ = [
    "AdditiveSeq2Seq",
    "FixedVectorSeq2Seq",
    "LanguageModel",
    "MultiplicativeSeq2Seq",
    "Seq2SeqConfig",
    "additive_scores",
    "alignment",
    "multiplicative_scores",
]

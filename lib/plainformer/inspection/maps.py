"""Who looks at whom inside a model, collected while it runs."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from plainformer.attention.multi_head import MultiHeadAttention


class AttentionMaps(dict[str, Float[Tensor, "b h t s"]]):
    """The weights of every multi-head attention of `model` that runs inside the block, by its name.

    Computed once more for the picture: the model itself keeps none. Where one runs several times,
    the last counts. Weights come without gradients.
    >>> attention = nn.ModuleDict({"look": MultiHeadAttention(6, 2)})
    >>> with AttentionMaps(attention) as maps:
    ...     _ = attention["look"](torch.ones(1, 3, 6))
    >>> maps["look"].shape
    torch.Size([1, 2, 3, 3])
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self._model, self._hooks = model, []

    def __enter__(self):
        for name, part in self._model.named_modules():
            if isinstance(part, MultiHeadAttention):
                keep = partial(self._keep, name)
                self._hooks.append(part.register_forward_pre_hook(keep, with_kwargs=True))
        return self

    def __exit__(self, *problem):
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _keep(self, name: str, part: MultiHeadAttention, args: tuple, kwargs: dict) -> None:
        with torch.no_grad():
            self[name] = part.weights(*args, **kwargs)

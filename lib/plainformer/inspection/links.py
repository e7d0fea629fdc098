"""The strongest links in a map of attention."""

from jaxtyping import Float
from torch import Tensor


def strongest_links(
    weights: Float[Tensor, "t t"],
    tokens: list[str],
    n: int = 5,
    ignore: tuple[str, ...] = ("[CLS]", "[SEP]"),
) -> list[tuple[str, str, float]]:
    """The `n` largest weights between two different positions, as (query, key, weight).

    Tokens in `ignore` neither look nor are looked at: encoders park attention on [CLS] and [SEP].
    """
    if len(tokens) != len(weights):
        raise ValueError(
            f"weights has {len(weights)} positions, but there are {len(tokens)} tokens; "
            f"pass the tokens that the weights were computed for"
        )
    words = [i for i, token in enumerate(tokens) if token not in ignore]
    links = [(tokens[i], tokens[j], weights[i, j].item()) for i in words for j in words if i != j]
    return sorted(links, key=lambda link: link[2], reverse=True)[:n]

"""The plainest tokenizer: every character is a symbol."""

from collections.abc import Iterable


class CharTokenizer:
    """Number the characters of an alphabet, behind three symbols that are no characters.

    `PAD` fills up short texts, `START` stands in front of what a decoder writes, `END` behind it.
    The characters follow in the order of their code points, whatever order they came in, so the
    same set of characters always gets the same ids. A character is what Python takes for one: an
    accent that is written by itself counts.
    >>> chars = CharTokenizer("hello")
    >>> chars.encode("hole"), chars.decode([4, 6, 5, 3, 2, 0])
    ([4, 6, 5, 3], 'hole')
    """

    PAD, START, END = range(3)

    def __init__(self, alphabet: Iterable[str]):
        self.characters = "".join(sorted(set("".join(alphabet))))
        self._ids = {character: i for i, character in enumerate(self.characters, start=3)}

    @property
    def vocab_size(self) -> int:
        """How many ids there are, the three special ones included."""
        return 3 + len(self.characters)

    def encode(self, text: str) -> list[int]:
        """The ids of the characters; neither START nor END is added.

        Raises ValueError when a character is not in the alphabet.
        """
        strange = sorted(set(text) - set(self.characters))
        if strange:
            raise ValueError(
                f"text must hold characters of the alphabet only, got {strange} in {text!r}; "
                f"make the tokenizer from all texts that it will see"
            )
        return [self._ids[character] for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """The text up to the first END; PAD and START leave no trace.

        Raises ValueError when an id is negative or not below `vocab_size`.
        """
        text = []
        for i in ids:
            if not 0 <= i < self.vocab_size:
                raise ValueError(
                    f"an id must be in 0..{self.vocab_size - 1}, got {i}; "
                    f"it belongs to another tokenizer"
                )
            if i == self.END:
                break
            text.append(self.characters[i - 3] if i >= 3 else "")
        return "".join(text)

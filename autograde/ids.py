"""Students' names as names of folders: made usable where they are not, and back again.

An id becomes `submitted/ID/`, `records/CHAPTER/ID.json` and a key of the gradebook.
"""

import hashlib
import unicodedata
from urllib.parse import quote, unquote

LONGEST = 200  # bytes; file systems stop at 255, and a file is called a little more than its id
TROUBLE = '%/\\:"'


def trouble(name: str) -> str | None:
    """Why a folder of this name cannot be a student's, or None when it can."""
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        return "has letters in its name that cannot be written; rename it"
    if len(name.encode()) > LONGEST:
        return f"has a name of more than {LONGEST} bytes; give it a shorter one"
    return None


def usable(name: str, taken: tuple[str, ...] = ()) -> str:
    """An id for this name: the name itself where that will do; `taken` are names of something else.

    What will not do is written as `%2F` is for a slash. A name that is too long is cut.
    """
    name = unicodedata.normalize("NFC", name)  # macOS writes é as two letters, others as one
    hard = [letter in TROUBLE or not letter.isprintable() for letter in name]
    if hard and (name[0] in ". " or name in taken):
        hard[0] = True
    if hard and name[-1] in ". ":
        hard[-1] = True
    letters = zip(name, hard, strict=True)
    made = "".join(_escaped(letter) if odd else letter for letter, odd in letters)
    if len(made.encode()) <= LONGEST:
        return made
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return made.encode()[: LONGEST - 12].decode(errors="ignore").rstrip(". ") + f"~{digest}"


def original(ident: str) -> str:
    """The name that an id was made of, unless that was too long."""
    return unquote(ident, errors="surrogatepass")


def _escaped(letter: str) -> str:
    plain = quote(letter, safe="", errors="surrogatepass")
    return plain if plain != letter else f"%{ord(letter):02X}"

"""What only this class knows: a random key, `secret.key` in its folder, made when first needed.

The course is public, its hidden tests too, so whatever must not be foreseen comes from the key. It
is written once: the same work gets the same random numbers in every run. Lose it, and a regrade
draws others; nothing else depends on it.
"""

import contextlib
import hmac
import os
import secrets
import tempfile

from autograde.plan import ClassFolder

NAME = "secret.key"


def class_key(folder: ClassFolder) -> bytes:
    """The key of this class, for its owner alone to read."""
    path = folder.root / NAME
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    with tempfile.NamedTemporaryFile("w", dir=folder.root, prefix=".new-") as scratch:
        scratch.write(secrets.token_hex(32))
        scratch.flush()
        with contextlib.suppress(FileExistsError):  # another thread was first, and its key counts
            os.link(scratch.name, path)
    return path.read_bytes()


def seed_for(folder: ClassFolder, what: str) -> str:
    """A seed that is this class's own for `what`, a submission's digest for example."""
    return hmac.new(class_key(folder), what.encode(), "sha256").hexdigest()

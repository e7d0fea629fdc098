"""Find and read what a student sent, and say what was repaired. Nothing is changed on disk."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from autograde import archive
from autograde.chapters import Course, UnknownChapter
from autograde.notebook import Sent, Unreadable, parse_notebook

LARGEST = 100 * 2**20  # bytes; a notebook with a few figures has one hundredth of that
EARLIER = "earlier"  # the folder beside a notebook with those that it replaced
NOTED = "incoming.txt"  # what was to be said when a notebook came out of a download of the class


# Which file


def find_notebook(folder: Path, name: str) -> tuple[Path, list[str]]:
    """The notebook in a student's folder: the one with the right name, else the only one.

    Where there is none, a folder or a zip inside is looked into. Links are never followed: a link
    could point at the solutions. Raises Unreadable.
    """
    if folder.is_symlink():
        raise Unreadable("the folder is a link, and links are not followed", "put the files there")
    files = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    notes = _told(folder)
    notes += [f"{p.name} is a link and was not followed" for p in files if p.is_symlink()]
    notes += _unused_code(files)
    found = [p for p in files if _is_file(p, ".ipynb")] or _below(folder)
    zips = [p for p in files if _is_file(p, ".zip")]
    if not found and not zips:
        listed = ", ".join(p.name for p in files) or "nothing"
        raise Unreadable(
            f"there is no notebook {name}.ipynb in the folder, only {listed}", "ask for it"
        )
    suffix = ".ipynb" if found else ".zip"
    place, more = _pick([p.name for p in found or zips], name, suffix)
    path = (found or zips)[place]
    if found and zips:
        notes.append(f"also sent, and not graded: {', '.join(p.name for p in zips)}")
    if path.parent != folder:
        notes.append(f"it lay in the folder {path.parent.relative_to(folder).as_posix()}")
    return path, notes + (more if found else [])


def _is_file(path: Path, suffix: str) -> bool:
    return path.suffix.lower() == suffix and not path.is_symlink() and path.is_file()


def _below(folder: Path) -> list[Path]:
    """Notebooks in folders inside, but neither hidden ones nor those that were replaced."""
    found = []
    for path in sorted(folder.rglob("*.[iI][pP][yY][nN][bB]")):
        inside = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in archive.JUNK for part in inside)
        if not hidden and inside[0] != EARLIER and path.resolve().is_relative_to(folder.resolve()):
            found += [path] if _is_file(path, ".ipynb") else []
    return found


def _told(folder: Path) -> list[str]:
    path = folder / NOTED
    if not _is_file(path, ".txt"):
        return []
    return path.read_text(encoding="utf-8", errors="replace")[:2000].splitlines()[:10]


def _unused_code(files: list[Path]) -> list[str]:
    """A torch.py beside the notebook is what the learner's kernel met, and the grader does not."""
    code = [p.name for p in files if p.suffix == ".py" or (p / "__init__.py").is_file()]
    return [f"code beside the notebook is not used: {', '.join(code)}"] if code else []


def _pick(names: Sequence[str], name: str, suffix: str = ".ipynb") -> tuple[int, list[str]]:
    """The place of the file to grade among these, and what is to be said about it."""
    exact = [place for place, one in enumerate(names) if one == f"{name}{suffix}"]
    if len(exact) == 1:
        others = ", ".join(one for place, one in enumerate(names) if place != exact[0])
        return exact[0], [f"also sent, and not graded: {others}"] if others else []
    if len(names) == 1:
        return 0, [f"the file is called {names[0]}, not {name}.ipynb"]
    what = "notebooks" if suffix == ".ipynb" else "archives"
    raise Unreadable(
        f"{len(exact) or 'none'} of the {len(names)} {what} "
        f"{'are' if exact else 'is'} called {name}{suffix} ({', '.join(names)})",
        "rename the one to grade",
    )


# What is in it


def read_notebook(path: Path) -> Sent:
    """The cells of a notebook file, or of the notebook in a zip.

    Raises Unreadable with a reason that its reader can act on.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise _too_large(path.name, size)
        if archive.is_zip(path):
            return _from_zip(path)
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read ({error.strerror})") from None
    return parse_notebook(data, path)


def _too_large(name: str, size: int) -> Unreadable:
    return Unreadable(
        f"{name} has {size / 2**20:.0f} MiB, at most {LARGEST / 2**20:.0f} are read",
        "ask for a copy with the outputs cleared",
        "clear the outputs (Edit > Clear Outputs of All Cells) and save it",
    )


def _from_zip(path: Path) -> Sent:
    """The notebook in a student's zip; its name is that of the chapter, as the folder's is."""
    try:
        with path.open("rb") as file:
            data, notes = unzipped(file, path.name, path.parent.name)
    except archive.BadArchive as error:
        raise Unreadable(str(error), "ask for the notebook itself", "use the notebook") from None
    sent = parse_notebook(data, path)
    sent.notes[:0] = notes
    return sent


def unzipped(source: BinaryIO, name: str, wanted: str) -> tuple[bytes, list[str]]:
    """The one notebook in a zip, and what is to be said. Raises BadArchive, Unreadable."""
    with archive.opened(source, name) as opened:
        files, notes = archive.members(opened)
        found = [one for one in files if one.name.lower().endswith(".ipynb")]
        if not found:
            listed = ", ".join(str(one) for one in files[:5]) or "nothing"
            raise Unreadable(f"there is no notebook in {name}, only {listed}")
        place, more = _pick([one.name for one in found], wanted)
        notes += [f"{found[place]} was read out of {name}", *(more if len(found) > 1 else [])]
        return archive.content(opened, found[place]), notes


def chapter_of(sent: Sent, course: Course) -> str:
    """The chapter that a notebook answers: by the labels of its cells, else by its name."""
    slugs = {slug.split("-")[0]: slug for slug in course.slugs()}
    numbers = Counter(cell.grade_id.partition("-")[0] for cell in sent.cells if cell.grade_id)
    known = [number for number, _ in numbers.most_common() if number in slugs]
    slug = slugs[known[0]] if known else None if numbers else course.guess(sent.path.name)
    if slug is None:
        raise UnknownChapter(
            f"{sent.path} is of no chapter that is known here: neither its cells nor its name say "
            f"which; call it like 02-attention.ipynb ({course.written()})"
        )
    return slug

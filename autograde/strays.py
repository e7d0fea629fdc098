"""Submissions that lie where the grader does not look: listed, so that none is lost in silence."""

from dataclasses import dataclass
from pathlib import Path

from autograde.chapters import Course
from autograde.ids import trouble
from autograde.incoming import SENT, left_over
from autograde.plan import ClassFolder


@dataclass(frozen=True, slots=True)
class Stray:
    """Something handed in that is not graded. `why` says what is wrong and what to do."""

    path: str  # from the class folder on
    student: str | None
    why: str

    def __str__(self) -> str:
        return f"not graded: {self.path} {self.why}"


def strays(folder: ClassFolder, course: Course) -> list[Stray]:
    """What nobody grades: in the wrong place below submitted/, or not taken in from incoming/."""
    found, slugs = _waiting(folder), course.slugs()
    for one in _shown(folder.root / "submitted"):
        if not one.is_dir():
            why = "lies in no student's folder; move it to submitted/STUDENT/CHAPTER/"
            why += ", or to incoming/ if it is of the whole class" if _is_zip(one) else ""
            found += [Stray(_from(folder, one), None, why)] if _is_sent(one) else []
        elif one.name in slugs:
            why = f"is named like a chapter; a submission lies in submitted/STUDENT/{one.name}/"
            found.append(Stray(_from(folder, one), None, why))
        elif (why := trouble(one.name)) is not None:
            found.append(Stray(_readable(_from(folder, one)), None, why))
        else:
            found += [
                Stray(_from(folder, path), one.name, _why(path, course))
                for path in _shown(one)
                if (path.is_dir() and path.name not in slugs) or _is_sent(path)
            ]
    return found


def _waiting(folder: ClassFolder) -> list[Stray]:
    """What lies in incoming/ and is in nobody's folder."""
    found = []
    for path, problems in left_over(folder).items():
        for student, what, why in problems:
            where = f"{_from(folder, path)}{f': {what}' if what else ''}"
            found.append(Stray(where, student, why))
    return found


def _why(path: Path, course: Course) -> str:
    wrong = "is no chapter" if path.is_dir() else "lies in no chapter's folder"
    what = "the notebook in it" if path.is_dir() else "it"
    meant = course.guess(path.name) or "CHAPTER"
    home = f"submitted/{path.parent.name}/{meant}/"
    return f"{wrong}; move {what} to {home} ({course.written()})"


def _shown(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _is_sent(path: Path) -> bool:
    return path.suffix.lower() in SENT and not path.is_dir()


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _readable(text: str) -> str:
    """Names that are no Unicode, or hold control characters, as they would stand in code."""
    return text.encode("unicode_escape", errors="surrogatepass").decode()


def _from(folder: ClassFolder, path: Path) -> str:
    return path.relative_to(folder.root).as_posix()

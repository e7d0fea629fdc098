"""Submissions that lie where the grader does not look: listed, so that none is lost in silence."""

from dataclasses import dataclass
from pathlib import Path

from autograde.chapters import Course
from autograde.plan import ClassFolder

SENT = (".ipynb", ".zip")  # what a student may have sent; other loose files are the teacher's


@dataclass(frozen=True, slots=True)
class Stray:
    """Something handed in that is not graded. `why` says what is wrong and what to do."""

    path: str  # from the class folder on
    student: str | None
    why: str

    def __str__(self) -> str:
        return f"not graded: {self.path} {self.why}"


def strays(folder: ClassFolder, course: Course) -> list[Stray]:
    """Everything below submitted/ that is neither a student's folder nor a chapter in one."""
    found, slugs = [], course.slugs()
    for one in _shown(folder.root / "submitted"):
        if not one.is_dir():
            why = "lies in no student's folder; move it to submitted/STUDENT/CHAPTER/"
            found += [Stray(_from(folder, one), None, why)] if _is_sent(one) else []
        elif one.name in slugs:
            why = f"is named like a chapter; a submission lies in submitted/STUDENT/{one.name}/"
            found.append(Stray(_from(folder, one), None, why))
        else:
            found += [
                Stray(_from(folder, path), one.name, _why(path, course))
                for path in _shown(one)
                if (path.is_dir() and path.name not in slugs) or _is_sent(path)
            ]
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


def _from(folder: ClassFolder, path: Path) -> str:
    return path.relative_to(folder.root).as_posix()

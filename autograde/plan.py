"""Where a class keeps its files, who submitted what, and what has to be graded again.

The layout is nbgrader's: source/, release/, submitted/, autograded/, feedback/ and gradebook.db.
Ours alone are secret.key and records/: for each submission what the grader found, with a digest of
all that marks depend on, so that unchanged work is not graded again and a stopped run can go on.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autograde.chapters import Course, UsageError
from autograde.ids import trouble
from autograde.run import Limits

# The grader's own files that decide about marks; the rest only shows them.
DECIDING = (
    "archive", "intake", "notebook", "cell_code", "extract", "written", "run", "lint", "source",
    "source_cells", "overlay", "syntax", "build", "judging", "autograded", "record",
)  # fmt: skip


class NoClass(UsageError):
    """There is no class folder where one was expected."""


@dataclass(frozen=True, slots=True)
class ClassFolder:
    """One class: its folder in nbgrader's layout. Nothing is created until something is written."""

    root: Path

    @property
    def gradebook(self) -> Path:
        return self.root / "gradebook.db"

    def submission(self, student: str, slug: str) -> Path:
        return self.root / "submitted" / student / slug

    def autograded(self, student: str, slug: str) -> Path:
        return self.root / "autograded" / student / slug / f"{slug}.ipynb"

    def feedback(self, student: str, slug: str) -> Path:
        return self.root / "feedback" / student / slug / f"{slug}.html"

    def record(self, student: str, slug: str) -> Path:
        return self.root / "records" / slug / f"{student}.json"

    def students(self, slug: str) -> list[str]:
        """Everybody who handed in a folder for this chapter, in the order of their ids."""
        folder = self.root / "submitted"
        if not folder.is_dir():
            raise NoClass(
                f"there is no folder {folder}; a submission lies in submitted/STUDENT/{slug}/. "
                "`python -m autograde grade --sample` shows a class to look at"
            )
        return sorted(
            one.name
            for one in folder.iterdir()
            if not one.name.startswith(".") and not trouble(one.name) and (one / slug).is_dir()
        )

    def chapters(self, course: Course) -> list[str]:
        """The chapters that somebody handed in, in the order of the book."""
        return [slug for slug in course.slugs() if self.students(slug)]

    def read_record(self, student: str, slug: str) -> dict | None:
        """What the grader found last time, or None. A damaged record counts as none."""
        try:
            found = json.loads(self.record(student, slug).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def write_record(self, record: dict) -> None:
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        write(self.record(record["student"], record["chapter"]), text)


def write(path: Path, text: str) -> bool:
    """Write a file all at once, or not at all; True when that changed it."""
    data = text.encode("utf-8", errors="replace")
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.chmod(scratch, 0o644)
    os.replace(scratch, path)
    return True


def source_digest(course: Course, slug: str, limits: Limits | None = None) -> str:
    """Of everything on our side that the marks of a chapter depend on."""
    files = [course.source(slug), *filter(None, [course.own_tests(slug)]), *deciding_files()]
    versions = [importlib.metadata.version(name) for name in ("torch", "numpy")]
    return digest_of(str(limits or Limits()), *versions, *(file.read_bytes() for file in files))


def deciding_files() -> list[Path]:
    """The code, the course's library included, that decides about marks."""
    lib = importlib.util.find_spec("plainformer").submodule_search_locations[0]
    return [
        *(Path(__file__).with_name(f"{name}.py") for name in DECIDING),
        *sorted(Path(__file__).with_name("engine").glob("*.py")),
        *sorted(Path(lib).rglob("*.py")),
    ]


def sent_part(digest: str) -> str:
    """The part of a record's digest, `OURS:SENT`, that speaks of the submission alone."""
    return digest.rpartition(":")[2]


def submission_digest(folder: Path) -> str:
    """Of every file in a student's folder, names included; the content of links is not read."""
    parts: list[str | bytes] = []
    for path in sorted(folder.rglob("*")):
        parts.append(str(path.relative_to(folder)))
        if path.is_file() and not path.is_symlink():
            parts.append(path.read_bytes())
    return digest_of(*parts)


def digest_of(*parts: str | bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", errors="surrogateescape") if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()

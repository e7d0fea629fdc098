"""What a command was asked to look at: which class, which chapters, which student."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from autograde.chapters import ROOT, Course, UsageError
from autograde.course_rules import overlay
from autograde.incoming import unpack
from autograde.overlay import add_overlay, with_overlay
from autograde.plan import ClassFolder
from autograde.strays import Stray, strays

SAMPLE = ROOT / "_build" / "class"
DEFAULT = Path("class")
LISTED = 20  # students named in a message


class NoSubmission(UsageError):
    """A student was named who handed in nothing."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The class, chapters and student of one command, all of which exist."""

    course: Course
    folder: ClassFolder
    slugs: list[str]
    named: list[str]  # those chapters that the command line names
    student: str | None
    strays: list[Stray]

    def tell_strays(self) -> bool:
        """Say on standard error what lies in the wrong place; True when something does."""
        for stray in self.strays:
            print(stray, file=sys.stderr)
        return bool(self.strays)

    def as_json(self) -> dict:
        return {"class": str(self.folder.root), "strays": [asdict(one) for one in self.strays]}


def add_class_dir(parser) -> None:
    """The options of a command that looks at a class as a whole."""
    parser.add_argument(
        "--class-dir",
        metavar="DIR",
        type=Path,
        help="the folder with submitted/ and gradebook.db (default: class)",
    )
    parser.add_argument(
        "--sample", action="store_true", help="the sample class in _build/class instead"
    )
    add_overlay(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def add_class_options(parser) -> None:
    """The options of a command that looks at chapters and students of a class."""
    parser.add_argument(
        "chapters", nargs="*", metavar="CHAPTER", help="for example 02; default all"
    )
    parser.add_argument("--student", metavar="ID", help="one student only")
    add_class_dir(parser)


def chosen_class(args) -> ClassFolder:
    return ClassFolder((args.class_dir or (SAMPLE if args.sample else DEFAULT)).resolve())


def chosen(
    args,
    *,
    fill: Callable[[ClassFolder, Course, list[str]], object] | None = None,
    take_in: bool = False,
) -> Choice:
    """The Choice that a command line means; `fill` may first put submissions into the folder.

    With `take_in`, what lies in incoming/ is unpacked, and standard error says what was done.
    Raises UsageError for a chapter, class or student that does not exist.
    """
    folder = chosen_class(args)
    course = with_overlay(Course(), args.overlay or overlay(folder))
    named = [course.resolve(name) for name in args.chapters]
    if fill is not None:
        fill(folder, course, named)
    for line in unpack(folder, course) if take_in else ():
        print(line, file=sys.stderr)
    slugs = named or folder.chapters(course)
    present = sorted({one for slug in slugs for one in folder.students(slug)})
    astray = strays(folder, course)
    if args.student is not None:
        astray = [stray for stray in astray if stray.student == args.student]
        if not astray and args.student not in present:
            raise NoSubmission(_nobody(args.student, named, present))
    return Choice(course, folder, slugs, named, args.student, astray)


def _nobody(student: str, named: list[str], present: list[str]) -> str:
    where = f" for {', '.join(named)}" if named else ""
    more = f" and {len(present) - LISTED} more" if len(present) > LISTED else ""
    listed = ", ".join(present[:LISTED]) or "none yet"
    return f"there is no submission from {student!r}{where}; students: {listed}{more}"

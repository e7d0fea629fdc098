"""For learners: run the visible checks on a notebook, one line an exercise."""

import json
from dataclasses import dataclass
from pathlib import Path

from autograde.chapters import Course, UsageError
from autograde.extract import extract
from autograde.intake import Sent, Unreadable, chapter_of, read_notebook
from autograde.run import NOT_WRITTEN, PASS, Engine, Verdict, need_setup
from autograde.source import load


class NoNotebook(UsageError):
    """The notebook to check does not exist."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One exercise: its verdicts on the visible parts of the tests."""

    exercise: str
    title: str
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> int:
        return sum(verdict.state == PASS for verdict in self.verdicts)

    @property
    def state(self) -> str:
        if self.passed == len(self.verdicts):
            return "pass"
        unwritten = all(verdict.state == NOT_WRITTEN for verdict in self.verdicts)
        return NOT_WRITTEN if unwritten else "mend"

    @property
    def message(self) -> str:
        """The first thing to mend."""
        failed = [verdict for verdict in self.verdicts if verdict.state != PASS]
        return failed[0].message if failed and self.state == "mend" else ""


@dataclass(frozen=True, slots=True)
class CheckedNotebook:
    """All of it. `written` says of each written answer whether there is one."""

    rows: list[Checked]
    written: dict[str, bool]
    notes: list[str]


def check_notebook(
    sent: Sent, slug: str, engine: Engine, course: Course | None = None
) -> CheckedNotebook:
    """The visible checks of every exercise, and what was odd about the file."""
    chapter = load(slug, course)
    found = extract(sent, chapter)
    verdicts = engine.run(chapter, found.answers, visible_only=True, extra=found.extra)
    need_setup(verdicts.values())
    rows = [
        Checked(one.id, one.title, tuple(verdicts[test.id] for test in one.tests))
        for one in chapter.exercises.values()
    ]
    written = {cell.id: cell.id in found.written for cell in chapter.written}
    return CheckedNotebook(rows, written, found.notes)


def find(name: str, course: Course) -> Path:
    """The notebook that `name` means: a file, or a chapter's own. Raises UsageError."""
    given = Path(name)
    if given.suffix.lower() != ".ipynb" and not given.is_file():
        path = course.notebook(course.resolve(name))
    else:
        path = given
    if not path.is_file():
        raise NoNotebook(
            f"the file {path} does not exist; say which notebook, or a chapter like 02"
        )
    return path


def add_check(commands) -> None:
    parser = commands.add_parser("check", help="run the visible checks on your notebook")
    parser.add_argument("notebook", help="a notebook, or a chapter: 02 means chapters/02-....ipynb")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    parser.set_defaults(run=run_check)


def run_check(args) -> int:
    """Print one line an exercise, and what to mend; return 1 unless everything passes."""
    course = Course()
    path = find(args.notebook, course)
    try:
        sent = read_notebook(path)
    except Unreadable as reason:
        raise ValueError(reason.for_learner) from None
    slug = chapter_of(sent, course)
    if path.name != f"{slug}.ipynb":
        sent.notes.append(f"{path.name} was checked as chapter {slug}")
    with Engine(isolation="none") as engine:  # it is one's own work
        checked = check_notebook(sent, slug, engine, course)
    if args.json:
        print(json.dumps(_json(path, slug, checked), indent=1))
    else:
        print(_text(checked))
    return 0 if all(row.state == "pass" for row in checked.rows) else 1


def _json(path: Path, slug: str, checked: CheckedNotebook) -> dict:
    return {
        "notebook": str(path),
        "chapter": slug,
        "exercises": [
            {"exercise": row.exercise, "state": row.state, "message": row.message}
            for row in checked.rows
        ],
        "written": checked.written,
        "notes": checked.notes,
    }


def _text(checked: CheckedNotebook) -> str:
    lines = [f"note: {note}" for note in checked.notes]
    for row in checked.rows:
        counts = f"{row.passed}/{len(row.verdicts)}"
        lines.append(f"{row.exercise:<36} {counts:>5} visible checks  {row.state}")
        lines += [f"      {line}" for line in row.message.splitlines()]
    done = sum(row.state == "pass" for row in checked.rows)
    lines += [
        f"{done} of {len(checked.rows)} exercises pass what you can see; hidden checks use other",
        "numbers, never another specification",
    ]
    return "\n".join([*lines, *_written(list(checked.written.values()))])


def _written(filled: list[bool]) -> list[str]:
    """One line on the written answers, which no check can judge."""
    if not filled:
        return []
    if len(filled) == 1:
        state = "filled in" if filled[0] else "still empty"
        return [f"1 written answer: {state}; a person reads it"]
    empty = f", {filled.count(False)} still empty" if not all(filled) else ""
    return [
        f"{len(filled)} written answers: {filled.count(True)} filled in{empty}; a person reads them"
    ]

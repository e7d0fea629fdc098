"""For learners: run the visible checks on a notebook, one line an exercise."""

import json
from dataclasses import dataclass
from pathlib import Path

from autograde.chapters import Course
from autograde.extract import extract
from autograde.intake import Unreadable, read_notebook
from autograde.run import NOT_WRITTEN, PASS, Engine, Verdict
from autograde.source import load


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


def check_notebook(path: Path, slug: str, engine: Engine, course: Course | None = None):
    """The visible checks of every exercise, and the notes on what was odd about the file."""
    chapter = load(slug, (course or Course()).root)
    found = extract(read_notebook(path), chapter)
    verdicts = engine.run(chapter, found.answers, visible_only=True, extra=found.extra)
    rows = [
        Checked(one.id, one.title, tuple(verdicts[test.id] for test in one.tests))
        for one in chapter.exercises.values()
    ]
    return rows, found.notes


def add_check(commands) -> None:
    parser = commands.add_parser("check", help="run the visible checks on your notebook")
    parser.add_argument("notebook", help="a notebook, or a chapter: 02 means chapters/02-....ipynb")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    parser.set_defaults(run=run_check)


def run_check(args) -> int:
    """Print one line an exercise, and what to mend; return 1 unless everything passes."""
    course = Course()
    given = Path(args.notebook)
    slug = course.resolve(args.notebook)
    path = given if given.suffix == ".ipynb" else course.notebook(slug)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; say which notebook, or a chapter like 02")
    with Engine() as engine:
        try:
            rows, notes = check_notebook(path, slug, engine, course)
        except Unreadable as reason:
            raise ValueError(str(reason)) from None
    if args.json:
        shown = [{"exercise": r.exercise, "state": r.state, "message": r.message} for r in rows]
        print(json.dumps({"notebook": str(path), "exercises": shown, "notes": notes}, indent=1))
    else:
        for note in notes:
            print(f"note: {note}")
        for row in rows:
            counts = f"{row.passed}/{len(row.verdicts)}"
            print(f"{row.exercise:<36} {counts:>5} visible checks  {row.state}")
            print("".join(f"      {line}\n" for line in row.message.splitlines()), end="")
        done = sum(row.state == "pass" for row in rows)
        print(f"{done} of {len(rows)} exercises pass what you can see; hidden checks use other")
        print("numbers, never another specification")
    return 0 if all(row.state == "pass" for row in rows) else 1

"""Grade what was submitted: read, find the answers, run them, record the scores, show a table.

One bad submission never stops the class: whatever goes wrong with one becomes its own row with a
reason. Work that has not changed since it was graded is not graded again.
"""

import contextlib
import datetime
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from autograde import record as recording
from autograde import sample_class
from autograde.chapters import Course
from autograde.choose import add_class_options, chosen
from autograde.extract import Extracted, extract
from autograde.intake import Unreadable, find_notebook, read_notebook
from autograde.plan import ClassFolder, source_digest, submission_digest
from autograde.report import Table, table
from autograde.run import Engine, SetupFailed, Verdict, need_setup
from autograde.source import Chapter, load


@dataclass(slots=True)
class Outcome:
    """What one run of `grade` did for one chapter."""

    chapter: Chapter
    graded: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)  # student -> reason


def grade_chapter(
    folder: ClassFolder,
    slug: str,
    *,
    course: Course | None = None,
    student: str | None = None,
    again: bool = False,
    engine: Callable[[], Engine] = Engine,
    progress: Callable[[str, int, int], None] = lambda student, done, of: None,
) -> Outcome:
    """Grade everybody's submission of one chapter, or one student's.

    `again` grades unchanged work too. `progress` is told who is next, how many are done, of how
    many.
    """
    course = course or Course()
    outcome = Outcome(load(slug, course.root))
    ours = source_digest(course, slug)
    in_book = set(recording.scores(folder, slug))
    waiting: dict[str, str] = {}
    for one in folder.students(slug):
        if student is not None and one != student:
            continue
        digest = f"{ours}:{submission_digest(folder.submission(one, slug))}"
        if not again and one in in_book and _is_graded(folder, one, slug, digest):
            outcome.unchanged.append(one)
        else:
            waiting[one] = digest
    if not waiting:
        return outcome
    recording.prepare(folder, outcome.chapter)
    with contextlib.ExitStack() as stack:
        running = _Restartable(engine, stack)
        for done, (one, digest) in enumerate(waiting.items()):
            progress(one, done, len(waiting))
            reason = grade_submission(folder, outcome.chapter, one, digest, running.run)
            if reason is None:
                outcome.graded.append(one)
            else:
                outcome.problems[one] = reason
    return outcome


def grade_submission(
    folder: ClassFolder, chapter: Chapter, student: str, digest: str, run: Callable
) -> str | None:
    """Grade one submission and write it down; the reason when it could not be graded, else None.

    Never raises, except when the gradebook itself is unusable: then no submission can be graded.
    """
    slug = chapter.slug
    before = folder.read_record(student, slug) or {}
    line = {"student": student, "chapter": slug, "digest": digest, "graded": False, "reason": None}
    try:
        path, notes = find_notebook(folder.submission(student, slug), slug)
        sent = read_notebook(path)
        submitted, more = recording.submitted_at(path)
        sent.notes[:0] = [*notes, *more]
        found = extract(sent, chapter)
        verdicts = run(chapter, found.answers, extra=found.extra)
        need_setup(verdicts.values())
        new = _sent_part(before.get("digest", "")) != _sent_part(digest)
        recording.record(folder, chapter, student, found, verdicts, submitted=submitted, new=new)
        line |= _graded(path, submitted, found, verdicts)
    except (Unreadable, SetupFailed) as error:
        line["reason"] = str(error)
    except recording.GradebookError:
        raise
    except Exception as error:  # the class goes on, and the teacher is told which one to look at
        line["reason"] = (
            f"the grader itself failed: {type(error).__name__}: {error}; grade it by hand, "
            "or send us the notebook"
        )
    folder.write_record(line)
    return line["reason"]


class _Restartable:
    """The engine, started when first needed, and anew after it has failed."""

    def __init__(self, make: Callable[[], Engine], stack: contextlib.ExitStack):
        self._make, self._stack, self._engine = make, stack, None

    def run(self, chapter: Chapter, answers: dict[str, str], *, extra=()) -> dict[str, Verdict]:
        if self._engine is None:
            self._engine = self._stack.enter_context(self._make())
        try:
            return self._engine.run(chapter, answers, extra=extra)
        except Exception:
            self._engine = None
            with contextlib.suppress(Exception):  # it has failed already; stop it if it still runs
                self._stack.close()
            raise


def _is_graded(folder: ClassFolder, student: str, slug: str, digest: str) -> bool:
    record = folder.read_record(student, slug)
    return (
        record is not None
        and record.get("digest") == digest
        and record.get("graded") is True
        and folder.autograded(student, slug).exists()
    )


def _sent_part(digest: str) -> str:
    """The part of a record's digest that speaks of the submission alone."""
    return digest.rpartition(":")[2]


def _graded(
    path: Path,
    submitted: datetime.datetime,
    found: Extracted,
    verdicts: dict[str, Verdict],
) -> dict:
    return {
        "graded": True,
        "file": path.name,
        "submitted": submitted.isoformat(timespec="seconds"),
        "notes": found.notes,
        "written": sorted(found.written),
        "tests": [asdict(verdict) for verdict in verdicts.values()],
    }


# The command


def add_grade(commands) -> None:
    parser = commands.add_parser("grade", help="grade what was submitted")
    add_class_options(parser)
    parser.add_argument("--again", action="store_true", help="grade unchanged work too")
    parser.set_defaults(run=grade)


def grade(args) -> int:
    """Print a table for each chapter; return 1 when any submission could not be graded."""
    choice = chosen(args, fill=sample_class.build_class if args.sample else None)
    course, folder = choice.course, choice.folder
    outcomes = [
        grade_chapter(
            folder,
            slug,
            course=course,
            student=args.student,
            again=args.again,
            progress=_progress(slug),
        )
        for slug in choice.slugs
    ]
    tables = [table(folder, outcome.chapter, args.student) for outcome in outcomes]
    if args.json:
        print(json.dumps({**choice.as_json(), "chapters": _json(outcomes, tables)}))
    else:
        print("\n\n".join(map(str, tables)) or f"nobody has submitted anything in {folder.root}")
        print(f"\n{_summary(outcomes)}")
    troubles = [str(stray) for stray in choice.strays]
    troubles += [
        f"not graded: {student}, {outcome.chapter.slug}: {reason}"
        for outcome in outcomes
        for student, reason in outcome.problems.items()
    ]
    if args.sample:
        for outcome, shown in zip(outcomes, tables, strict=True):
            troubles += sample_class.surprises(course, outcome.chapter, shown)
    print("".join(f"{trouble}\n" for trouble in troubles), end="", file=sys.stderr)
    return 1 if troubles else 0


def _progress(slug: str) -> Callable[[str, int, int], None]:
    """A line on a terminal that counts up; nothing where the output is kept in a file."""

    def show(student: str, done: int, of: int) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[Kgrading {slug}: {done + 1} of {of}, {student}", end="", file=sys.stderr)
            if done + 1 == of:
                print("\r\x1b[K", end="", file=sys.stderr)

    return show


def _summary(outcomes: list[Outcome]) -> str:
    graded = sum(len(outcome.graded) for outcome in outcomes)
    unchanged = sum(len(outcome.unchanged) for outcome in outcomes)
    problems = sum(len(outcome.problems) for outcome in outcomes)
    return f"{graded} graded, {unchanged} unchanged, {problems} could not be graded"


def _json(outcomes: list[Outcome], tables: list[Table]) -> list[dict]:
    return [
        {
            **shown.as_json(),
            "graded": outcome.graded,
            "unchanged": outcome.unchanged,
            "problems": outcome.problems,
        }
        for outcome, shown in zip(outcomes, tables, strict=True)
    ]

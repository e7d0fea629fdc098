"""Grade again after a chapter or the grader has changed: first show whose marks would change.

Nothing is written without `--write`, and no exercise loses points without `--allow-lower`: it keeps
all the verdicts that it has. What a teacher gave by hand stands, whatever the tests say now.
"""

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from autograde import record as recording
from autograde.changes import Change, changes, old_verdicts, same_tests
from autograde.chapters import Course, UsageError
from autograde.choose import add_class_dir, chosen
from autograde.course_rules import limits
from autograde.executors import add_executor, executor
from autograde.grade import STOPPED
from autograde.judging import Judged, judge, judge_all
from autograde.lock import alone
from autograde.plan import ClassFolder, sent_part, source_digest, submission_digest
from autograde.progress import counter, ctrl_c
from autograde.run import Engine
from autograde.source import Chapter, load


class WouldLower(UsageError):
    """Marks cannot be kept, because the tests that gave them are gone."""


@dataclass(slots=True)
class Regrade:
    """A class judged again, and nothing written yet."""

    chapter: Chapter
    exercises: list[str]
    judged: list[Judged] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)  # student -> why it is left as it is
    stopped: bool = False


def regrade_chapter(
    folder: ClassFolder,
    slug: str,
    *,
    exercises: list[str] | None = None,
    course: Course | None = None,
    student: str | None = None,
    engine: Callable[[], Engine] = Engine,
    workers: int = 1,
    progress: Callable[[str, int, int], None] = lambda student, done, of: None,
) -> Regrade:
    """Judge what is graded already with the present tests, and compare. Nothing is written."""
    course = course or Course()
    chapter = load(slug, course)
    told = Regrade(chapter, list(chapter.exercises) if exercises is None else exercises)
    waiting = _graded_work(folder, told, course, student)
    in_book, stop = recording.scores(folder, slug), threading.Event()

    def work(job, run) -> Judged:
        return judge(folder, chapter, *job, run, told.exercises)

    workers = max(1, min(workers, len(waiting)))
    with (
        ctrl_c(stop),
        judge_all(waiting.items(), work, engine=engine, workers=workers, stop=stop) as results,
    ):
        for done, judged in enumerate(results, 1):
            if judged.reason is None:
                told.judged.append(judged)
            else:
                told.problems[judged.student] = judged.reason
            progress(judged.student, done, len(waiting))
    told.stopped = stop.is_set()
    told.judged.sort(key=lambda one: one.student)
    for judged in told.judged:
        before = folder.read_record(judged.student, slug)
        line = in_book[judged.student]
        told.changes += changes(chapter, told.exercises, judged, before, line)
    return told


def _graded_work(
    folder: ClassFolder, told: Regrade, course: Course, student: str | None
) -> dict[str, str]:
    """Student -> present digest, of the work that is graded and has not been handed in anew."""
    slug, waiting = told.chapter.slug, {}
    ours = source_digest(course, slug, limits(folder))
    in_book = recording.graded_students(folder, slug)
    for one in folder.students(slug):
        if student not in (None, one):
            continue
        record = folder.read_record(one, slug) or {}
        sent = submission_digest(folder.submission(one, slug))
        if one not in in_book or not record.get("graded"):
            told.problems[one] = "not graded yet; run `python -m autograde grade`"
        elif sent_part(record["digest"]) != sent:
            told.problems[one] = "handed in anew since; run `python -m autograde grade`"
        else:
            waiting[one] = f"{ours}:{sent}"
    return waiting


# Writing


def write_regrade(folder: ClassFolder, told: Regrade, *, allow_lower: bool) -> None:
    """Write what was judged: all of an exercise's verdicts of now, or all of those of then.

    Raises WouldLower before anything is written, when marks could not be kept.
    """
    _check_that_marks_can_be_kept(folder, told, allow_lower=allow_lower)
    whole = set(told.exercises) == set(told.chapter.exercises)
    lowered = {(one.student, one.exercise) for one in told.changes if one.lowers}
    with alone(folder), recording.recorder(folder, told.chapter) as recorder:
        for judged in told.judged:
            before = folder.read_record(judged.student, told.chapter.slug)
            verdicts = {}
            kept = [one for one in before.get("kept", []) if one not in told.exercises]
            for ident in told.chapter.exercises:
                keep = (judged.student, ident) in lowered and not allow_lower
                old = old_verdicts(before, ident)
                now = {t: v for t, v in judged.verdicts.items() if v.exercise == ident}
                verdicts |= old if keep or ident not in told.exercises else now
                kept += [ident] if keep else []
            digest = judged.digest if whole else before["digest"]
            judged = replace(judged, verdicts=verdicts, digest=digest)
            recorder.record(
                judged.student, judged.found, verdicts, submitted=judged.submitted, new=False
            )
            folder.write_record({**judged.as_record(told.chapter.slug), "kept": kept})


def _check_that_marks_can_be_kept(folder: ClassFolder, told: Regrade, *, allow_lower: bool) -> None:
    lost = [one for one in told.changes if one.lowers and not one.lasting]
    if lost and not allow_lower:
        raise WouldLower(
            f"nothing was written: the tests of {lost[0].exercise} are others than then, so "
            f"{lost[0].student} cannot keep {lost[0].old:g} points ({len(lost)} such); "
            "--allow-lower takes the new marks"
        )
    for judged in told.judged:
        before = folder.read_record(judged.student, told.chapter.slug)
        for ident, exercise in told.chapter.exercises.items():
            if ident not in told.exercises and not same_tests(before, exercise):
                raise WouldLower(
                    f"nothing was written: {ident} has other tests too since {judged.student} was "
                    f"graded; regrade the whole chapter, {told.chapter.slug}"
                )


# The command


def add_regrade(commands) -> None:
    parser = commands.add_parser(
        "regrade", help="after a change of a chapter: whose marks would change, and by how much"
    )
    parser.add_argument("what", metavar="CHAPTER|EXERCISE", help="for example 02, or 02-softmax")
    parser.add_argument("--student", metavar="ID", help="one student only")
    parser.add_argument("--write", action="store_true", help="write it down; else it only shows")
    parser.add_argument(
        "--allow-lower", action="store_true", help="an exercise may lose points too"
    )
    add_class_dir(parser)
    add_executor(parser)
    parser.set_defaults(run=regrade)


def regrade(args) -> int:
    """Show who changes and by how much, then write it if asked; 1 when some could not be judged."""
    slug, exercises = _meant(args.what)
    args.chapters = [slug]
    choice = chosen(args)
    with executor(args, limits(choice.folder)) as there:
        told = regrade_chapter(
            choice.folder,
            slug,
            exercises=exercises,
            course=choice.course,
            student=args.student,
            progress=counter(f"judging {args.what} again"),
            **there,
        )
    if told.stopped:
        print("stopped; nothing was written", file=sys.stderr)
        return STOPPED
    if not args.json:
        print(shown(told, allow_lower=args.allow_lower), flush=True)
    if args.write:
        write_regrade(choice.folder, told, allow_lower=args.allow_lower)
    if args.json:
        print(json.dumps({**choice.as_json(), **_json(told, args)}))
    elif told.changes:
        print("written" if args.write else "nothing was written; --write does it")
    for student, reason in told.problems.items():
        print(f"left as it is: {student}, {slug}: {reason}", file=sys.stderr)
    return 1 if choice.tell_strays() or told.problems else 0


def _meant(name: str) -> tuple[str, list[str] | None]:
    """(chapter, its exercises or None for all), from `02`, `02-attention` or `02-softmax`."""
    course = Course()
    if name in course.slugs() or "-" not in name:
        return course.resolve(name), None
    slug = course.resolve(name.partition("-")[0])
    exercises = load(slug, course).exercises
    if name not in exercises:
        raise UsageError(f"there is no exercise {name!r}; those of {slug}: {', '.join(exercises)}")
    return slug, [name]


def shown(told: Regrade, *, allow_lower: bool) -> str:
    """The table: who changes, by how much, and because of which tests."""
    what = told.exercises[0] if len(told.exercises) == 1 else told.chapter.slug
    changing = len({one.student for one in told.changes})
    lines = [f"{what}: {len(told.judged)} judged again, {changing} would change"]
    width = max([7, *(len(one.student) for one in told.changes)])
    wide = max([8, *(len(one.exercise) for one in told.changes)])
    if told.changes:
        heads = f"{'student':<{width}}  {'exercise':<{wide}}    old    new  difference"
        lines += ["", heads]
    for one in told.changes:
        kept = "  keeps the old" if one.lowers and not allow_lower else ""
        lines.append(
            f"{one.student:<{width}}  {one.exercise:<{wide}}  {one.old:>5g}  {one.new:>5g}"
            f"  {one.new - one.old:>+10g}{kept}"
        )
        lines += [f"{'':<{width}}  {test}: {a} -> {b}" for test, (a, b) in one.tests.items()]
    return "\n".join(lines)


def _json(told: Regrade, args) -> dict:
    return {
        "chapter": told.chapter.slug,
        "exercises": told.exercises,
        "judged": len(told.judged),
        "changes": [one.as_json(allow_lower=args.allow_lower) for one in told.changes],
        "problems": told.problems,
        "written": args.write,
    }

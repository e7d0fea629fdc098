"""Grade what was submitted: read, find the answers, run them, record the scores, show a table.

One bad submission never stops the class: whatever goes wrong with one becomes its own row with a
reason. Work that has not changed since it was graded is not graded again, and where only the
chapter or the grader has changed, `regrade` shows first whose marks would.
"""

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from autograde import record as recording
from autograde import sample_class
from autograde.chapters import Course
from autograde.choose import add_class_options, chosen
from autograde.course_rules import limits
from autograde.executors import add_executor, executor
from autograde.judging import Judged, grader_failed, judge, judge_all
from autograde.lock import alone
from autograde.plan import ClassFolder, sent_part, source_digest, submission_digest
from autograde.progress import counter, ctrl_c
from autograde.report import Table, table
from autograde.run import Engine
from autograde.source import Chapter, load

STOPPED = 130  # the exit status of a command that Ctrl-C ended


@dataclass(slots=True)
class Outcome:
    """What one run of `grade` did for one chapter."""

    chapter: Chapter
    graded: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)  # graded with an earlier chapter or grader
    problems: dict[str, str] = field(default_factory=dict)  # student -> reason
    left: list[str] = field(default_factory=list)  # not reached, because Ctrl-C stopped the run


def grade_chapter(
    folder: ClassFolder,
    slug: str,
    *,
    course: Course | None = None,
    student: str | None = None,
    again: bool = False,
    outdated: bool = False,
    engine: Callable[[], Engine] = Engine,
    workers: int = 1,
    progress: Callable[[str, int, int], None] = lambda student, done, of: None,
) -> Outcome:
    """Grade everybody's submission of one chapter, or one student's, on several engines.

    `again` grades unchanged work too, `outdated` that which only our side has changed for.
    `progress` is told who is done, how many are, of how many. Raises GradebookError when the
    gradebook is unusable: then no submission can be graded.
    """
    course = course or Course()
    outcome = Outcome(load(slug, course))
    waiting = _plan(folder, outcome, course, student, again=again, outdated=outdated)
    if not waiting:
        return outcome
    stop, reasons = threading.Event(), {}

    def work(job, run) -> Judged:
        return judge(folder, outcome.chapter, *job, run)

    workers = min(workers, len(waiting))
    with (
        alone(folder),
        recording.recorder(folder, outcome.chapter) as recorder,
        ctrl_c(stop),
        judge_all(waiting.items(), work, engine=engine, workers=workers, stop=stop) as results,
    ):
        progress("", 0, len(waiting))
        for judged in results:
            if stop.is_set() and judged.ours:
                continue  # perhaps the Ctrl-C itself; the next run will tell
            reasons[judged.student] = write_down(folder, recorder, judged)
            progress(judged.student, len(reasons), len(waiting))
    for one in waiting:  # in their own order, whoever was done first
        if one not in reasons:
            outcome.left.append(one)
        elif reasons[one] is None:
            outcome.graded.append(one)
        else:
            outcome.problems[one] = reasons[one]
    return outcome


def _plan(
    folder: ClassFolder,
    outcome: Outcome,
    course: Course,
    student: str | None,
    *,
    again: bool,
    outdated: bool,
) -> dict[str, str]:
    """Student -> digest, of those to be graded; the outcome is told of those who need not be."""
    slug, waiting = outcome.chapter.slug, {}
    ours = source_digest(course, slug, limits(folder))
    in_book = recording.graded_students(folder, slug)
    for one in folder.students(slug):
        if student not in (None, one):
            continue
        digest = f"{ours}:{submission_digest(folder.submission(one, slug))}"
        record = folder.read_record(one, slug) or {}
        stands = one in in_book and record.get("graded") is True
        stands = stands and not again and folder.autograded(one, slug).exists()
        if stands and record.get("digest") == digest:
            outcome.unchanged.append(one)
        elif stands and not outdated and keeps_its_tests(record, digest, outcome.chapter):
            outcome.outdated.append(one)
        else:
            waiting[one] = digest
    return waiting


def keeps_its_tests(record: dict, digest: str, chapter: Chapter) -> bool:
    """True when this is the graded work still, and its tests are worth the same points still."""
    if sent_part(record["digest"]) != sent_part(digest):
        return False
    return {test["test"]: test["points"] for test in record["tests"]} == {
        test.id: test.header["points"] for one in chapter.exercises.values() for test in one.tests
    }


def write_down(folder: ClassFolder, recorder: recording.Recorder, judged: Judged) -> str | None:
    """Scores first, then the record: killed in between, the next run grades this one again.

    Returns the reason why the submission could not be graded, or None.
    """
    if judged.reason is None:
        before = folder.read_record(judged.student, recorder.slug) or {}
        new = sent_part(before.get("digest", "")) != sent_part(judged.digest)
        try:
            recorder.record(
                judged.student, judged.found, judged.verdicts, submitted=judged.submitted, new=new
            )
        except recording.GradebookError:
            raise
        except Exception as error:  # the class goes on without this one
            judged = replace(judged, reason=grader_failed(error))
    folder.write_record(judged.as_record(recorder.slug))
    return judged.reason


# The command


def add_grade(commands) -> None:
    parser = commands.add_parser("grade", help="grade what was submitted")
    add_class_options(parser)
    parser.add_argument("--again", action="store_true", help="grade unchanged work too")
    add_executor(parser)
    parser.set_defaults(run=grade)


def grade(args) -> int:
    """Print a table for each chapter; return 1 when any submission could not be graded.

    Ctrl-C ends the run between submissions, with nothing lost; the exit status is then 130.
    """
    choice = chosen(args, fill=sample_class.build_class if args.sample else None, take_in=True)
    course, folder = choice.course, choice.folder
    outcomes = []
    with executor(args, limits(folder)) as there:
        for slug in choice.slugs:
            outcome = grade_chapter(
                folder,
                slug,
                course=course,
                student=args.student,
                again=args.again,
                outdated=args.sample,  # nobody's marks are at stake
                progress=counter(f"grading {slug}"),
                **there,
            )
            if outcome.left:
                print(_stopped(outcome), file=sys.stderr)
                return STOPPED
            outcomes.append(outcome)
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


def _stopped(outcome: Outcome) -> str:
    parts = (outcome.graded, outcome.problems, outcome.unchanged, outcome.outdated)
    done = sum(map(len, parts))
    return (
        f"stopped: {done} of {done + len(outcome.left)} submissions of {outcome.chapter.slug} are "
        "done and kept; run the same command to go on"
    )


def _summary(outcomes: list[Outcome]) -> str:
    graded = sum(len(outcome.graded) for outcome in outcomes)
    unchanged = sum(len(outcome.unchanged) for outcome in outcomes)
    problems = sum(len(outcome.problems) for outcome in outcomes)
    lines = [f"{graded} graded, {unchanged} unchanged, {problems} could not be graded"]
    lines += [
        f"{len(outcome.outdated)} of {outcome.chapter.slug} were graded with an earlier state of "
        f"the chapter or the grader and keep their marks; `python -m autograde regrade "
        f"{outcome.chapter.slug.partition('-')[0]}` shows whose would change"
        for outcome in outcomes
        if outcome.outdated
    ]
    return "\n".join(lines)


def _json(outcomes: list[Outcome], tables: list[Table]) -> list[dict]:
    return [
        {
            **shown.as_json(),
            "graded": outcome.graded,
            "unchanged": outcome.unchanged,
            "outdated": outcome.outdated,
            "problems": outcome.problems,
        }
        for outcome, shown in zip(outcomes, tables, strict=True)
    ]

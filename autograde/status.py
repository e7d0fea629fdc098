"""Who handed in, who is graded, and whose marks are out of date."""

import json

from autograde.chapters import Course
from autograde.choose import add_class_options, chosen
from autograde.course_rules import limits
from autograde.plan import ClassFolder, source_digest, submission_digest

GRADED, CHANGED, WAITING, PROBLEM = "graded", "changed since", "waiting", "could not be graded"


def states(
    folder: ClassFolder, slug: str, course: Course, student: str | None = None
) -> dict[str, tuple[str, str]]:
    """Student -> one of the four states, and why; nothing is graded or written."""
    ours, found = source_digest(course, slug, limits(folder)), {}
    for one in folder.students(slug):
        if student in (None, one):
            sent = submission_digest(folder.submission(one, slug))
            found[one] = _state(folder.read_record(one, slug), ours, sent)
    return found


def _state(record: dict | None, ours: str, sent: str) -> tuple[str, str]:
    if record is None:
        return WAITING, ""
    before, _, sent_before = record.get("digest", "").partition(":")
    changed = ["the submission"] if sent_before != sent else []
    changed += ["the chapter or the grader"] if before != ours else []
    if changed:
        return CHANGED, " and ".join(changed)
    return (GRADED, "") if record["graded"] else (PROBLEM, record["reason"])


def add_status(commands) -> None:
    parser = commands.add_parser("status", help="who is graded and who is not")
    add_class_options(parser)
    parser.set_defaults(run=status)


def status(args) -> int:
    """Print one line a submission; return 1 unless all are graded."""
    choice = chosen(args)
    found = {
        slug: states(choice.folder, slug, choice.course, choice.student) for slug in choice.slugs
    }
    if args.json:
        shown = {slug: {} for slug in found}
        for slug, these in found.items():
            for student, (state, why) in these.items():
                shown[slug][student] = {"state": state, "why": why or None}
        print(json.dumps({**choice.as_json(), "chapters": shown}))
    else:
        for slug, these in found.items():
            for student, (state, why) in these.items():
                print(f"{slug:<22} {student:<24} {state}{f': {why}' if why else ''}")
    done = all(state == GRADED for these in found.values() for state, _ in these.values())
    return 0 if not choice.tell_strays() and done else 1

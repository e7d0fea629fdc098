"""Who handed in, who is graded, and whose marks are out of date."""

import json

from autograde.chapters import Course
from autograde.plan import (
    ClassFolder,
    add_class_options,
    chosen_chapters,
    chosen_class,
    source_digest,
    submission_digest,
)

GRADED, CHANGED, WAITING, PROBLEM = "graded", "changed since", "waiting", "could not be graded"


def states(folder: ClassFolder, slug: str, course: Course) -> dict[str, str]:
    """Student -> one of the four states; nothing is graded or written."""
    ours, found = source_digest(course, slug), {}
    for student in folder.students(slug):
        record = folder.read_record(student, slug)
        if record is None:
            found[student] = WAITING
        elif record["digest"] != f"{ours}:{submission_digest(folder.submission(student, slug))}":
            found[student] = CHANGED
        else:
            found[student] = GRADED if record["graded"] else PROBLEM
    return found


def add_status(commands) -> None:
    parser = commands.add_parser("status", help="who is graded and who is not")
    add_class_options(parser)
    parser.set_defaults(run=status)


def status(args) -> int:
    """Print one line a submission; return 1 unless all are graded."""
    course, folder = Course(), chosen_class(args)
    chosen = chosen_chapters(args, course, folder)
    found = {slug: states(folder, slug, course) for slug in chosen}
    if args.student is not None:
        found = {
            slug: {student: state for student, state in these.items() if student == args.student}
            for slug, these in found.items()
        }
    if args.json:
        print(json.dumps(found))
    else:
        for slug, these in found.items():
            for student, state in these.items():
                print(f"{slug:<22} {student:<24} {state}")
    return 0 if all(s == GRADED for these in found.values() for s in these.values()) else 1

"""Write a page of feedback for each student and chapter.

It lies where nbgrader puts its own feedback, so nbgrader's release_feedback hands it out. What it
shows is `feedback_page`'s to say.
"""

import json

from autograde.chapters import Course
from autograde.choose import add_class_options, chosen
from autograde.course_rules import Rules, book_address, rules
from autograde.export_points import lines_of
from autograde.feedback_page import feedback_page
from autograde.plan import ClassFolder, write
from autograde.record import scores
from autograde.source import load


def write_feedback(
    folder: ClassFolder, slug: str, *, course: Course | None = None, student: str | None = None
) -> tuple[list[str], list[str]]:
    """Write the pages of one chapter: the students who have one now, and those who cannot."""
    course = course or Course()
    chapter, agreed = load(slug, course), rules(folder, course)
    more = {"book": book_address(folder), "zone": agreed.policy.zone}
    in_book, counts = scores(folder, slug), _counts(folder, course, slug, agreed)
    done, left = [], []
    for one in folder.students(slug):
        if student not in (None, one):
            continue
        record = folder.read_record(one, slug)
        if record is None or not record["graded"] or one not in in_book:
            left.append(one)
            continue
        page = feedback_page(chapter, record, in_book[one], counts=counts.get(one, ""), **more)
        write(folder.feedback(one, slug), page)
        done.append(one)
    return done, left


def _counts(folder: ClassFolder, course: Course, slug: str, agreed: Rules) -> dict[str, str]:
    """Student -> what counts of the points, and why, where the class's rules say anything."""
    every = dict.fromkeys([*folder.chapters(course), slug])
    lines = lines_of(folder, [load(one, course) for one in every], agreed)
    return {
        line.student: f"{line.due:g} of {line.due_out_of:g} points count: {line.outcome.why}"
        for line in lines
        if line.chapter.slug == slug and line.due is not None
        if line.left_out or slug in agreed.deadlines or slug in agreed.hard_ends
    }


def add_feedback(commands) -> None:
    parser = commands.add_parser("feedback", help="write a page for each student")
    add_class_options(parser)
    parser.set_defaults(run=feedback)


def feedback(args) -> int:
    """Say where the pages are; return 1 when a submission is not graded."""
    choice = chosen(args)
    folder = choice.folder
    missing, shown = False, []
    for slug in choice.slugs:
        done, left = write_feedback(folder, slug, course=choice.course, student=args.student)
        missing = missing or bool(left)
        shown.append({"chapter": slug, "written": done, "not graded": left})
        if not args.json:
            print(f"{slug}: {len(done)} pages in {folder.root / 'feedback'}")
            for one in left:
                print(f"  not graded, so no page: {one}")
    if args.json:
        print(json.dumps({**choice.as_json(), "chapters": shown}))
    return 1 if choice.tell_strays() or missing else 0

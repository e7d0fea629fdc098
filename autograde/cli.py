"""`python -m autograde`: each command is a thin shell over a function that tests call directly."""

import argparse
import importlib
import json
import sys

from autograde.chapters import Course, UnknownChapter

# The modules that each add one command, in the order of the work.
COMMANDS = [
    "check", "audit", "grade", "status", "explain", "report", "feedback", "export", "doctor",
    "nbgrader_config",
]  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run one command: 0 all well, 1 something could not be graded or failed, 2 usage."""
    parser = argparse.ArgumentParser(prog="python -m autograde", description=__doc__)
    commands = parser.add_subparsers(metavar="command", required=True)
    add_release(commands)
    for name in COMMANDS:
        getattr(importlib.import_module(f"autograde.{name}"), f"add_{name}")(commands)
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except (UnknownChapter, FileNotFoundError, ValueError) as error:
        print(f"autograde: {error}", file=sys.stderr)
        return 2 if isinstance(error, UnknownChapter) else 1


def add_release(commands) -> None:
    parser = commands.add_parser("release", help="build the student notebooks from solutions/")
    parser.add_argument("chapters", nargs="*", help="for example: 02 (default: all)")
    parser.add_argument("--json", action="store_true", help="print what changed as JSON")
    parser.set_defaults(run=run_release)


def run_release(args) -> int:
    """Build each chapter's notebook; say which changed and which test cells run in-process."""
    from autograde.build import release
    from autograde.source import load

    course = Course()
    rows = []
    for slug in course.chosen(args.chapters):
        changed = release(slug, course)
        cells = [c for e in load(slug).exercises.values() for c in e.tests]
        inproc = [cell.id for cell in cells if cell.header.get("judge") == "inproc"]
        rows.append({"chapter": slug, "changed": changed, "inproc": inproc})
        if not args.json:
            state = "written" if changed else "unchanged"
            print(f"{state:<10} {course.notebook(slug)}")
            for cell in inproc:
                print(f"           judged in process: {cell}")
    if args.json:
        print(json.dumps(rows, indent=1))
    return 0

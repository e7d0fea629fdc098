"""`python -m autograde`: each command is a thin shell over a function that tests call directly."""

import argparse
import importlib
import json
import sys

from autograde.chapters import Course, UsageError
from autograde.run import WorkerError

DESCRIPTION = """\
Check, grade and build the notebooks of the course. Run it in the course's own folder.

For learners:
  check 02                     what passes in your notebook, and what to mend

For teachers, in the usual order (a submission lies in class/submitted/STUDENT/02-attention/):
  doctor                       has this machine all that grading needs?
  grade --sample               a made-up class, to see how it looks
  grade 02                     grade what was submitted: a table, and why points are missing
  status 02                    who is graded, and who is waiting
  explain 02 --student ID      everything that was found in one notebook
  marking 02 --export          written answers as a sheet to fill in, without names
  feedback 02                  a page for each student
  export 02                    the marks for other programs
  report 02                    the table again; nothing is run
  regrade 02                   after a change of a chapter: whose marks would change
  nbgrader-config              settings for nbgrader's formgrader, if you use it

For authors of chapters:
  release 02                   build the student notebook from solutions/
  audit 02                     grade all known right and wrong answers
"""
EPILOG = """\
`python -m autograde COMMAND --help` lists the options of a command.
Exit status: 0 all is well, 1 something failed or could not be graded, 2 called wrongly,
130 stopped with Ctrl-C.
"""

# The modules that each add one command, in the order of the work.
COMMANDS = [
    "check", "doctor", "grade", "status", "explain", "feedback", "export", "report",
    "regrade", "marking", "nbgrader_config", "audit",
]  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run one command: 0 all well, 1 something could not be graded or failed, 2 usage, 130 Ctrl-C.

    Whatever a command has written by then is whole, so the same command goes on from there.
    """
    args = command_line().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):  # a name that cannot be printed costs nobody the table
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return args.run(args)
    except (OSError, ValueError, WorkerError) as error:
        print(f"autograde: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print("\nautograde: stopped; run the same command to go on", file=sys.stderr)
        return 130


def command_line() -> argparse.ArgumentParser:
    """All commands with their options."""
    parser = argparse.ArgumentParser(
        prog="python -m autograde",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", title="all commands", required=True)
    for name in COMMANDS:
        getattr(importlib.import_module(f"autograde.{name}"), f"add_{name}")(commands)
    add_release(commands)
    return parser


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

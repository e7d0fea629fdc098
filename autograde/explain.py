"""Everything the grader found in one submission: repairs, and each test with its message."""

import json
import sys

from autograde.choose import add_class_options, chosen
from autograde.report import in_words, printable


def add_explain(commands) -> None:
    parser = commands.add_parser("explain", help="what the grader found in one student's work")
    add_class_options(parser)
    parser.set_defaults(run=explain)


def explain(args) -> int:
    """Print the record of `--student`; return 1 when there is none, or it could not be graded."""
    if args.student is None:
        print("autograde explain needs --student ID", file=sys.stderr)
        return 2
    choice = chosen(args)
    slugs = choice.named or [s for s in choice.slugs if args.student in choice.folder.students(s)]
    records = [choice.folder.read_record(args.student, slug) for slug in slugs]
    if args.json:
        print(json.dumps(records))
    else:
        for slug, record in zip(slugs, records, strict=True):
            print("\n".join(_lines(slug, record)))
    astray = choice.tell_strays()
    graded = records and all(record and record["graded"] for record in records)
    return 0 if graded and not astray else 1


def _lines(slug: str, record: dict | None) -> list[str]:
    if record is None:
        return [f"{slug}: not graded yet; run `python -m autograde grade`"]
    if not record["graded"]:
        return [f"{slug}: could not be graded: {record['reason']}"]
    lines = [f"{slug}: {record['file']}, received {record['submitted']}"]
    lines += [f"  repaired: {note}" for note in record["notes"]]
    lines += [
        f"  kept: {ident}: the present tests give fewer points (regrade --allow-lower takes those)"
        for ident in record.get("kept", [])
    ]
    for test in record["tests"]:
        got = test["points"] if test["state"] == "pass" else 0
        lines.append(f"  {got:g}/{test['points']:g}  {test['test']}: {test['state']}")
        lines += [f"       {printable(line)}" for line in in_words(test).splitlines()]
    lines += [f"  {ident}: to be read by a person" for ident in record["written"]]
    return lines

"""Marking written answers by sheets, by one person or by two; formgrader does it on a page.

The marks of the class go into nbgrader's gradebook. Those of a second marker never do: they lie
beside it, in second-marks/, and only serve to see how far two people agree.
"""

import contextlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from autograde.chapters import UsageError
from autograde.choose import add_class_dir, chosen
from autograde.comment_bank import comment_bank
from autograde.export import as_csv
from autograde.export_sheet import BadSheet
from autograde.ids import usable
from autograde.marking_import import BOOK, import_sheet, marks_before
from autograde.marking_page import marking_page
from autograde.marking_sheet import COLUMNS, answers, drawn, lines, question, rows, rubric
from autograde.plan import ClassFolder, write
from autograde.second_marks import agreements
from autograde.source import Chapter, load
from autograde.written import plain


def export_sheet(
    folder: ClassFolder, chapter: Chapter, marker: str = "", draw: int | None = None
) -> tuple[list[Path], Path | None]:
    """Write the sheet and a page for each exercise; an earlier sheet with other marks is kept.

    Returns the paths of what was written, and of the earlier sheet where there is one.
    """
    found = answers(folder, chapter)
    marks = marks_before(folder, chapter.slug, found, marker)
    if draw is not None:
        found = drawn(folder, found, draw)
    asked = {cell.id: question(chapter, cell) for cell in chapter.written}
    rubrics = {cell: rubric(text) for cell, text in asked.items()}
    table = rows(found, rubrics, marks, marker)
    end = f"-{usable(marker)}" if marker else ""
    home = folder.root / "marking"
    path = home / f"{chapter.slug}{end}.csv"
    pages = {
        home / f"{cell.id}{end}.html": marking_page(
            cell,
            asked[cell.id],
            comment_bank(folder, cell.id, rubrics[cell.id]),
            [answer for answer in found if answer.exercise == cell.id],
        )
        for cell in chapter.written
    }
    home.mkdir(exist_ok=True)
    kept = _kept(path, table) if path.exists() else None
    path.write_bytes(as_csv(COLUMNS, table).encode("utf-8-sig", errors="replace"))
    for page, text in pages.items():
        write(page, text)
    return [path, *pages], kept


def _kept(path: Path, table: Sequence[Mapping]) -> Path | None:
    """Move an earlier sheet aside, if it may hold a mark that the new one lacks."""
    ours = {(row["answer"], row["points"], plain(row["comment"])) for row in table}
    with contextlib.suppress(BadSheet):  # a file that we cannot read is kept as well
        given = {(one["answer"], one["points"], plain(one["comment"])) for one in lines(path)}
        if not [mark for mark in given - ours if any(mark[1:])]:
            return None
    aside = (path.with_stem(f"{path.stem}-earlier-{number}") for number in itertools.count(1))
    return path.rename(next(place for place in aside if not place.exists()))


def add_marking(commands) -> None:
    parser = commands.add_parser("marking", help="mark written answers by sheets")
    parser.add_argument("chapter", metavar="CHAPTER", help="for example 02")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--export", action="store_true", help="write a sheet to fill in, and pages")
    what.add_argument("--import", dest="sheet", type=Path, metavar="FILE", help="read one back")
    what.add_argument(
        "--agreement", action="store_true", help="how far second markers agree with the gradebook"
    )
    parser.add_argument("--marker", default="", metavar="NAME", help="a second marker")
    parser.add_argument(
        "--draw", type=int, metavar="N", help="N answers at random, for a second marker"
    )
    parser.add_argument(
        "--replace", action="store_true", help="take the sheet's where other marks are there"
    )
    add_class_dir(parser)
    parser.set_defaults(run=marking)


def marking(args) -> int:
    """Write, read or compare marks; say what was done."""
    if args.draw is not None and not (args.export and args.marker and args.draw > 0):
        raise UsageError("--draw N goes with --export and --marker NAME, and N is 1 or more")
    args.chapters, args.student = [args.chapter], None
    choice = chosen(args)
    chapter = load(choice.slugs[0], choice.course)
    if not chapter.written:
        raise UsageError(f"{chapter.slug} has no written answers")
    if args.export:
        made, kept = export_sheet(choice.folder, chapter, args.marker, args.draw)
        told, shown = [*map(str, made)], {"written": [*map(str, made)], "kept": kept and str(kept)}
        if kept:
            told.append(f"{kept}\n  is the sheet that was there, with marks that the new one lacks")
    elif args.sheet:
        shown = import_sheet(choice.folder, chapter, args.sheet, args.marker, replace=args.replace)
        told = _import_told(shown)
    else:
        found = agreements(choice.folder, chapter)
        told = _agreement_told(found)
        shown = {
            "agreements": [
                one | {"agreement": one["agreement"] and asdict(one["agreement"])} for one in found
            ]
        }
    print(json.dumps(shown) if args.json else "\n".join(told))
    return 0


def _import_told(done: Mapping) -> list[str]:
    where = BOOK if done["marker"] == BOOK else f"the second marks of {done['marker']}"
    told = [
        f"{done['marks']} marks, {done['new']} of them new, are in {where}; "
        f"{done['to_be_marked']} answers of the sheet are still without points"
    ]
    if done["without_points"]:
        told.append(f"comments without points were left out: {', '.join(done['without_points'])}")
    return told


def _agreement_told(found: Sequence[Mapping]) -> list[str]:
    if not found:
        return ["there are no second marks; `--export --draw 10 --marker NAME` writes a sheet"]
    told = []
    for one in found:
        told.append(f"{one['exercise']}: {BOOK} and {one['marker']}")
        compared = one["agreement"]
        words = compared.told(BOOK, one["marker"]) if compared else ["no answer marked by both"]
        told += [f"  {line}" for line in words]
    return told

"""The marks of second markers, beside the gradebook and never in it: who agrees, and how far."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from autograde.agreement import agreement
from autograde.marking_sheet import Answer, Mark, answers
from autograde.plan import ClassFolder, write
from autograde.source import Chapter


def second_marks(
    folder: ClassFolder, slug: str, found: Iterable[Answer]
) -> dict[str, dict[str, Mark]]:
    """Second marker -> answer -> mark; a mark of an earlier text of an answer is none."""
    now = {answer.id: answer.version for answer in found}
    return {
        marker: {
            ident: Mark(one["points"], one["comment"])
            for ident, one in marks.items()
            if one["version"] == now.get(ident)
        }
        for marker, marks in _read(_path(folder, slug)).items()
    }


def save_second(
    folder: ClassFolder,
    slug: str,
    marker: str,
    marks: Mapping[str, Mark],
    known: Mapping[str, Answer],
) -> None:
    """Add one second marker's marks to the file of a chapter."""
    path = _path(folder, slug)
    table = _read(path)
    table.setdefault(marker, {}).update(
        {
            ident: {
                "points": mark.points,
                "comment": mark.comment,
                "version": known[ident].version,
            }
            for ident, mark in marks.items()
        }
    )
    write(path, json.dumps(table, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def agreements(folder: ClassFolder, chapter: Chapter) -> list[dict]:
    """For each second marker and exercise, how far the marks agree with the gradebook's."""
    first = [answer for answer in answers(folder, chapter) if answer.marked]
    found = []
    for marker, marks in second_marks(folder, chapter.slug, first).items():
        for cell in chapter.written:
            pairs = [
                (answer.score.manual, marks[answer.id].points)
                for answer in first
                if answer.exercise == cell.id and answer.id in marks
            ]
            compared = agreement(pairs) if pairs else None
            found.append({"exercise": cell.id, "marker": marker, "agreement": compared})
    return found


def _path(folder: ClassFolder, slug: str) -> Path:
    return folder.root / "second-marks" / f"{slug}.json"


def _read(path: Path) -> dict[str, dict[str, dict]]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}; take a copy of it, or move it") from None

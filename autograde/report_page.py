"""The class report: one page for the teacher on how a chapter went, and which checks to look at.

It stands alone and runs no script, like a feedback page, and it names students: it is not for them.
"""

import statistics
from collections.abc import Sequence
from html import escape

from autograde.item_analysis import Item, items
from autograde.page_style import whole_page
from autograde.plan import ClassFolder
from autograde.record import scores
from autograde.report import Table, table
from autograde.source import Chapter

BINS = 10
STYLE = """
main { max-width: 60rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; }
th:first-child, td:first-child, .words, th:nth-child(2):last-child { text-align: left; }
svg { max-width: 100%; height: auto; } svg rect { fill: var(--line); }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; text-anchor: middle; }
svg line { stroke: var(--ink); }
"""


def report_page(folder: ClassFolder, chapter: Chapter) -> str:
    """The page of one chapter, from the gradebook and the records; nothing is run."""
    shown, in_book = table(folder, chapter), scores(folder, chapter.slug)
    graded = [row.student for row in shown.rows if row.reason is None]
    points = {
        student: {test: score.points for test, score in in_book.get(student, {}).items()}
        for student in graded
    }
    records = {student: folder.read_record(student, chapter.slug) for student in graded}
    found = items(chapter, points, records)
    title = escape(f"{chapter.title}: class report")
    parts = [
        f"<h1>{title}</h1>",
        _summary(shown),
        _histogram(shown),
        _flags(found),
        _exercises(found),
        _mistakes(found),
        _waiting(shown),
        _ungraded(shown),
    ]
    return whole_page(title, "\n".join(part for part in parts if part), STYLE)


def _totals(shown: Table) -> list[float]:
    return [row.points for row in shown.rows if row.points is not None]


def _summary(shown: Table) -> str:
    totals, out_of = _totals(shown), sum(shown.out_of.values())
    told = [f"{len(totals)} of {len(shown.rows)} submissions are graded."]
    if totals:
        told.append(
            f"Of {out_of:g} points the median is {statistics.median(totals):g}, the least "
            f"{min(totals):g}, the most {max(totals):g}."
        )
    return f"<p>{' '.join(told)}</p>"


def binned(totals: Sequence[float], out_of: float) -> list[int]:
    """How many totals fall into each of ten equal parts; full marks belong to the last."""
    counts = [0] * BINS
    for total in totals:
        counts[min(BINS - 1, max(0, int(BINS * total / out_of)))] += 1
    return counts


def _histogram(shown: Table) -> str:
    """Bars with their counts written on them: nothing is told by colour or height alone."""
    totals, out_of = _totals(shown), sum(shown.out_of.values())
    if not totals:
        return ""
    counts = binned(totals, out_of)
    edges = [f"{out_of * n / BINS:g}" for n in range(BINS + 1)]
    told = ", ".join(f"{edges[n]} to {edges[n + 1]}: {count}" for n, count in enumerate(counts))
    bars = []
    for n, count in enumerate(counts):
        high = 150 * count / max(counts)
        bars.append(f'<rect x="{20 + 60 * n}" y="{170 - high:g}" width="56" height="{high:g}"/>')
        if count:
            bars.append(f'<text x="{48 + 60 * n}" y="{164 - high:g}">{count}</text>')
    marks = [f'<text x="{18 + 60 * n}" y="188">{edge}</text>' for n, edge in enumerate(edges)]
    return (
        "<h2>Points in total</h2>\n"
        f'<svg viewBox="0 0 640 195" role="img" aria-label="People by points. {told}">\n'
        f'{"".join(bars)}<line x1="15" y1="170" x2="625" y2="170"/>{"".join(marks)}\n</svg>'
    )


def _flags(found: list[Item]) -> str:
    of_flag: dict[str, list[str]] = {}
    for one in found:
        for flag in one.flags:
            of_flag.setdefault(flag, []).append(f"<b>{escape(one.title)}</b>")
    if not of_flag:
        return "<h2>Look at these</h2>\n<p>No exercise stands out.</p>"
    told = [f"<li>{', '.join(titles)}: {flag}.</li>" for flag, titles in of_flag.items()]
    return "<h2>Look at these</h2>\n<ul>\n" + "\n".join(told) + "\n</ul>"


def _exercises(found: list[Item]) -> str:
    rows = [
        f"<tr><td>{escape(one.title)}</td><td>{one.out_of:g}</td>"
        f"<td>{one.attempted} of {one.people}</td><td>{_share(one.solved)}</td>"
        f"<td>{_share(one.mean)}</td><td>{_number(one.discrimination, '.2f')}</td>"
        f"<td>{_number(one.seconds, '.2f')}</td></tr>"
        for one in found
    ]
    heads = ["exercise", "points", "attempted", "solved", "mean", "discrimination", "seconds"]
    return (
        "<h2>Exercises</h2>\n<p>Solved, mean and discrimination are over those who attempted the "
        "exercise. Discrimination is the correlation of its points with the points of all others, "
        "and a dash where that is not defined. Seconds are the grader's own, the median.</p>\n"
        + _table("Exercises", heads, rows)
    )


def _table(name: str, heads: list[str], rows: list[str]) -> str:
    """A table that scrolls in its own box, with the keyboard too."""
    head = "".join(f"<th>{one}</th>" for one in heads)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{name}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table>\n</div>"
    )


def _share(value: float | None) -> str:
    return _number(value, ".0%")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _mistakes(found: list[Item]) -> str:
    rows = [
        f'<tr><td>{escape(one.title)}</td><td class="words">'
        + ", ".join(f"{escape(name.replace('_', ' '))} ({count})" for name, count in one.mistakes)
        + "</td></tr>"
        for one in found
        if one.mistakes
    ]
    if not rows:
        return ""
    return (
        "<h2>What went wrong</h2>\n<p>By name where the check knows the mistake, else by the rule "
        "that was broken; in brackets, for how many people.</p>\n"
        + _table("What went wrong", ["exercise", "mistakes"], rows)
    )


def _waiting(shown: Table) -> str:
    waiting = [row.student for row in shown.rows if not row.reason and None in row.marks.values()]
    if not waiting:
        return ""
    told = f"{len(waiting)} with written answers that nobody has marked yet"
    return f"<h2>Still to be read by a person</h2>\n<p>{told}: {escape(', '.join(waiting))}.</p>"


def _ungraded(shown: Table) -> str:
    rows = [row for row in shown.rows if row.reason is not None]
    if not rows:
        return ""
    told = [f"<li>{escape(row.student)}: {escape(row.reason)}</li>" for row in rows]
    return "<h2>Not graded</h2>\n<ul>\n" + "\n".join(told) + "\n</ul>"

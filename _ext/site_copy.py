"""Turn a student notebook into the page that the site shows.

The page is a copy: exercise, test and written cells get the tag `skip-execution` here, and only
here. In a notebook that is graded the tag would be a hole (stock nbgrader passes such a test over
and gives full marks), so `chapters/` never carries it.
"""

import copy
import html
import re

# Roles whose cells are shown but never run while the book is built.
NOT_RUN = {"exercise", "test", "written"}


class StaleNotebook(ValueError):
    """The notebook and the source it is built from do not belong together."""


def site_copy(notebook: dict, texts: dict[str, str]) -> dict:
    """The notebook as a page: headers above exercises and tests, a slot for each solution.

    `texts` holds the source's Markdown by cell id (`autograde.build.site_texts`): a page knows
    citations, labels and pictures in files, which the student notebook has to do without.
    """
    page = copy.deepcopy(notebook)
    points = points_by_exercise(page)
    last = {}  # exercise -> index of the last cell that belongs to it
    for index, cell in enumerate(page["cells"]):
        if (ours := _ours(cell)) and "exercise" in ours:
            last[ours["exercise"]] = index
    cells = []
    for index, cell in enumerate(page["cells"]):
        ours = _ours(cell)
        role, exercise = ours.get("role"), ours.get("exercise")
        if role in ("exercise", "written"):
            cells.append(_raw(f"header-{exercise}", _exercise_header(ours, points[exercise])))
        elif role == "test":
            cells.append(_raw(f"header-{ours['test']}", _test_header(ours)))
        if role in NOT_RUN:
            tags = cell["metadata"].setdefault("tags", [])
            # A tag becomes a class of the cell's frame, which the stylesheet uses.
            tags.extend(tag for tag in ("skip-execution", role) if tag not in tags)
        if cell["cell_type"] == "markdown" and role != "written":
            if cell["id"] not in texts:
                raise StaleNotebook(f"its text cell {cell['id']!r} is not in the source")
            cell["source"] = texts[cell["id"]]
        if role == "written":
            cell["source"] = '<div class="written-answer">Your answer, in the notebook.</div>'
        cells.append(cell)
        if exercise and last[exercise] == index:
            cells.append(_raw(f"slot-{exercise}", solution_slot(exercise)))
    page["cells"] = cells
    return page


def points_by_exercise(notebook: dict) -> dict[str, float]:
    """What each exercise is worth: the sum of its tests, or the points of a written answer."""
    points: dict[str, float] = {}
    for cell in notebook["cells"]:
        ours = _ours(cell)
        if ours.get("role") in NOT_RUN:
            earned = ours.get("points", 0) if ours["role"] != "exercise" else 0
            points[ours["exercise"]] = points.get(ours["exercise"], 0) + earned
    return points


def chapter_title(notebook: dict) -> str:
    """The text of the first `# Title` line."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and (
            found := re.search(r"^# (.+)$", _text(cell), re.MULTILINE)
        ):
            return found[1].strip()
    raise ValueError("the notebook has no `# Title` line")


def solution_slot(exercise: str) -> str:
    """Where `course_site` puts the solution, after everything that reads page text has run."""
    return f'<div class="solution-slot" data-exercise="{html.escape(exercise)}"></div>'


def _exercise_header(ours: dict, points: float) -> str:
    tier = html.escape(ours["tier"])  # core, more or deep: also the colour
    return (
        f'<div class="exercise-header tier-{tier}">'
        f'<span class="exercise-id">{html.escape(ours["exercise"])}</span> '
        f'<span class="exercise-title">{html.escape(ours["title"])}</span> '
        f'<span class="chip chip-tier">{tier}</span> '
        f'<span class="chip">{count(points, "point")}</span> '
        f'<span class="chip">about {ours["minutes"]} min</span>'
        f"</div>"
    )


def _test_header(ours: dict) -> str:
    name = ours["test"].removeprefix(ours["exercise"]).lstrip("-").replace("-", " ") or "test"
    return (
        f'<div class="test-header"><span>Check: {html.escape(name)}</span> '
        f'<span class="test-points">{count(ours.get("points", 0), "point")}</span></div>'
    )


def count(number: float, noun: str) -> str:
    """`1 point`, `2.5 points`."""
    return f"{number:g} {noun}" + ("" if number == 1 else "s")


def _raw(ident: str, source: str) -> dict:
    return {"cell_type": "markdown", "id": ident[:64], "metadata": {}, "source": source}


def _ours(cell: dict) -> dict:
    return cell["metadata"].get("plainformer", {})


def _text(cell: dict) -> str:
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])

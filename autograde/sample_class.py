"""The sample class: learners told as recipes, so that they never go stale.

A recipe (`tests/data/class/*.yml`) says which answer a learner gives to each exercise, what
happened to the notebook on its way, and which marks are due. The notebooks are made from the
released chapter each time. A top-level `answers`, `damage` or `marks` holds for every chapter;
the same keys under `chapters: {02-attention: ...}` add to it for one.

    student: grace
    about: Right, but noisy.
    answers: {default: reference}   # or stub, right, {right: NAME}, {wrong: NAME}, {source: CODE}
    damage: {noisy: true}
    marks: {default: full}          # full, none, or a number of points
"""

import copy
import json
import runpy
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml

from autograde import record as recording
from autograde.chapters import Course
from autograde.damage import DAMAGE, RecipeError
from autograde.plan import ClassFolder, write
from autograde.report import Table
from autograde.source import Chapter, load

MARK = "this-is-the-sample-class.txt"
KEYS = {"answers", "damage", "marks"}
MARKER_TEXT = "Made by `python -m autograde grade --sample`; everything in here is made anew.\n"


@dataclass(frozen=True, slots=True)
class Recipe:
    """One learner in one chapter."""

    student: str
    about: str
    file: str
    answers: dict
    damage: dict
    marks: dict


def recipes(course: Course, slug: str) -> list[Recipe]:
    """Everybody who hands in this chapter, in the order of the files' names."""
    folder = course.root / "tests" / "data" / "class"
    made = [_recipe(path, slug) for path in sorted(folder.glob("*.yml"))]
    return [one for one in made if one is not None]


def _recipe(path: Path, slug: str) -> Recipe | None:
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    if unknown := set(told) - KEYS - {"student", "about", "chapters"}:
        raise RecipeError(f"{path.name}: unknown keys {sorted(unknown)}; known: {sorted(KEYS)}")
    chapters = told.get("chapters")
    if chapters is not None and slug not in chapters:
        return None
    own = (chapters or {}).get(slug) or {}
    if unknown := set(own) - KEYS:
        raise RecipeError(f"{path.name}, {slug}: unknown keys {sorted(unknown)}")
    both = {key: {**(told.get(key) or {}), **(own.get(key) or {})} for key in KEYS}
    return Recipe(told["student"], told["about"], path.name, **both)


def marks_due(recipe: Recipe, chapter: Chapter) -> dict[str, float]:
    """Exercise id -> the points that the recipe says this learner must get."""
    _check_ids(recipe, chapter, recipe.marks)
    due = {}
    for exercise in chapter.exercises.values():
        mark = recipe.marks.get(exercise.id, recipe.marks.get("default"))
        mark = {"full": exercise.points, "none": 0}.get(mark, mark)
        if not isinstance(mark, int | float):
            raise RecipeError(f"{recipe.file}: marks for {exercise.id}: full, none or a number")
        due[exercise.id] = float(mark)
    return due


def surprises(course: Course, chapter: Chapter, shown: Table) -> list[str]:
    """Where the marks of the sample class are not those that the recipes say are due."""
    rows = {row.student: row for row in shown.rows}
    wrong = []
    for recipe in recipes(course, chapter.slug):
        row = rows.get(recipe.student)
        if row is None:
            continue
        if row.reason:
            wrong.append(f"{recipe.student}, {chapter.slug}: {recipe.file} expects a grade")
        for ident, due in marks_due(recipe, chapter).items() if not row.reason else ():
            if row.marks[ident] != due:
                wrong.append(
                    f"{recipe.student}, {ident}: {row.marks[ident]:g} points, "
                    f"{recipe.file} says {due:g}"
                )
    return wrong


def build_class(folder: ClassFolder, course: Course, slugs: list[str]) -> list[str]:
    """Write the submissions of the sample class; the chapters that it hands in.

    Raises RecipeError rather than touch a folder that holds another class.
    """
    mark = folder.root / MARK
    if folder.root.exists() and any(folder.root.iterdir()) and not mark.exists():
        raise RecipeError(
            f"{folder.root} holds another class; name an empty folder, or leave --sample out"
        )
    write(mark, MARKER_TEXT)
    handed_in = [slug for slug in slugs or course.slugs() if recipes(course, slug)]
    for slug in handed_in:
        chapter = load(slug, course)
        recording.prepare(folder, chapter)
        wanted = {}
        for recipe in recipes(course, slug):
            wanted[recipe.student] = submission(recipe, chapter, course, _released(folder, slug))
        for student in folder.root.glob(f"submitted/*/{slug}"):
            if student.parent.name not in wanted:
                shutil.rmtree(student)
        for student, files in wanted.items():
            _write_folder(folder.submission(student, slug), files)
    return handed_in


def _released(folder: ClassFolder, slug: str) -> nbformat.NotebookNode:
    return nbformat.read(folder.root / "release" / slug / f"{slug}.ipynb", as_version=4)


def _write_folder(folder: Path, files: dict[str, bytes]) -> None:
    """Make the folder hold these files; one that is as it should be keeps its time."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, data in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)


def submission(
    recipe: Recipe, chapter: Chapter, course: Course, released: nbformat.NotebookNode
) -> dict[str, bytes]:
    """File name -> content of what this learner hands in."""
    notebook = copy.deepcopy(released)
    _check_ids(recipe, chapter, recipe.answers)
    known = _known_answers(course, chapter.slug)
    for cell in notebook.cells:
        ident = cell.metadata.get("nbgrader", {}).get("grade_id")
        told = recipe.answers.get(ident, recipe.answers.get("default", "reference"))
        if ident in chapter.exercises:
            cell.source = _answer(told, ident, chapter, known, recipe)
        elif ident in {written.id for written in chapter.written}:
            cell.source = _text(told, ident, chapter, cell.source)
    name = f"{chapter.slug}.ipynb"
    files: dict[str, bytes] = {}
    prefix = b""
    for kind, argument in recipe.damage.items():
        if argument is False:  # a chapter takes back what holds for all
            continue
        if kind == "rename-file":
            name = argument
        elif kind == "byte-order-mark":
            prefix = b"\xef\xbb\xbf"
        elif kind == "timestamp":
            files["timestamp.txt"] = str(argument).encode()
        elif kind in DAMAGE:
            DAMAGE[kind](notebook, argument)
        else:
            known_kinds = [*DAMAGE, "rename-file", "byte-order-mark", "timestamp"]
            raise RecipeError(f"{recipe.file}: unknown damage {kind!r}; known: {known_kinds}")
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    return {**files, name: prefix + text.encode()}


def _answer(told, ident: str, chapter: Chapter, known: dict, recipe: Recipe) -> str:
    cell = chapter.exercises[ident].cell
    match told:
        case "reference":
            return cell.solution_text
        case "stub":
            return cell.stub_text
        case "right":
            return next(iter(known["RIGHT"].get(ident, {}).values()), cell.solution_text)
        case {"source": source}:
            return source
        case {"right": name} if name in known["RIGHT"].get(ident, {}):
            return known["RIGHT"][ident][name]
        case {"wrong": name} if name in known["WRONG"].get(ident, {}):
            return known["WRONG"][ident][name][0]
    names = {kind.lower(): list(known[kind].get(ident, {})) for kind in ("RIGHT", "WRONG")}
    raise RecipeError(
        f"{recipe.file}: {ident} cannot be answered with {told!r}; it is reference, stub, right, "
        f"source, or one of {names}"
    )


def _text(told, ident: str, chapter: Chapter, stub: str) -> str:
    """A written answer: the model answer, the learner's own text, or nothing."""
    if told == "stub":
        return stub
    if isinstance(told, dict) and "source" in told:
        return told["source"]
    return next(cell.solution_text for cell in chapter.written if cell.id == ident)


def _known_answers(course: Course, slug: str) -> dict:
    path = course.answers(slug)
    found = runpy.run_path(str(path)) if path.exists() else {}
    return {kind: found.get(kind, {}) for kind in ("RIGHT", "WRONG")}


def _check_ids(recipe: Recipe, chapter: Chapter, told: dict) -> None:
    known = {"default", *chapter.exercises, *(cell.id for cell in chapter.written)}
    if unknown := sorted(set(told) - known):
        raise RecipeError(
            f"{recipe.file}: {chapter.slug} has no exercise {unknown}; known: {sorted(known)}"
        )

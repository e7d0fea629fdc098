"""A chapter, a class and an engine small enough to see through, for the tests of the grader."""

import copy
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from autograde import cli, grade, regrade
from autograde import record as recording
from autograde.build import student_notebook
from autograde.chapters import ROOT, Course
from autograde.plan import ClassFolder
from autograde.run import Engine, Limits, Verdict
from autograde.source import load

EXAMPLE = "90-example"


@pytest.fixture(scope="session")
def course():
    """A course with one chapter: 90-example, two exercises and one written answer."""
    return Course(Path(__file__).parent / "data")


@pytest.fixture(scope="session")
def chapter(course):
    return load(EXAMPLE, course)


@pytest.fixture(scope="session")
def fresh_release(chapter):
    return student_notebook(chapter)


@pytest.fixture
def released(fresh_release):
    """The students' notebook of the example; a test may do with it what it likes."""
    return copy.deepcopy(fresh_release)


def _cell_of(notebook, ident):
    return next(
        c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == ident
    )


@pytest.fixture
def cell_of():
    """The first cell with this grade id: cell_of(notebook, "90-double")."""
    return _cell_of


@pytest.fixture
def filled(released):
    """Fill in exercises and written answers: filled(double="source", why="text")."""

    def fill(**answers):
        notebook = copy.deepcopy(released)
        for name, source in answers.items():
            _cell_of(notebook, f"90-{name.replace('_', '-')}").source = source
        return notebook

    return fill


class PretendEngine:
    """Judges by a look at the text: `wrong` fails, `explode` breaks the engine, else it passes."""

    started = 0

    def __init__(self):
        type(self).started += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, chapter, answers, *, exercises=None, visible_only=False, extra=(), seed=""):
        if any("explode" in source for source in answers.values()):
            raise RuntimeError("the worker ended")
        return {
            test.id: self._verdict(test, exercise.id, answers.get(exercise.id))
            for exercise in chapter.exercises.values()
            for test in exercise.tests
            if exercises is None or exercise.id in exercises
        }

    def _verdict(self, test, exercise, answer):
        points = float(test.header["points"])
        if answer is None:
            return Verdict(test.id, exercise, points, "not written", "this is not written yet")
        if "wrong" in answer:
            said = {"message": "expected 6, got 9", "rule": "values", "part": "visible"}
            return Verdict(test.id, exercise, points, "fail", **said)
        return Verdict(test.id, exercise, points, "pass")


@pytest.fixture
def engine():
    """A fresh PretendEngine class: `engine.started` counts how often it was started."""
    return type("FreshEngine", (PretendEngine,), {"started": 0})


class SlowEngine(PretendEngine):
    """Takes its time, so that a run can be stopped in the middle."""

    def run(self, *arguments, **options):
        time.sleep(0.1)
        return super().run(*arguments, **options)


class ImpatientEngine(Engine):
    """The real one, for answers that hang or eat memory."""

    def __init__(self):
        super().__init__(Limits(cpu=1, wall=4, memory=0.5))


@pytest.fixture
def impatient():
    return ImpatientEngine


GRADER = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("pretend", {conftest!r})
pretend = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pretend)
from autograde import choose, cli, grade
from autograde.chapters import Course
choose.Course = lambda: Course(Path({course!r}))
grade.grade_chapter.__kwdefaults__["engine"] = pretend.{engine}
sys.exit(cli.main(["grade", "90", "--class-dir", {folder!r}, "--workers", "2"]))
"""


@pytest.fixture
def grader(course):
    """Start `grade` on a class in a process group of its own, which the caller may kill.

    `engine` is the name of a class here; two of them work.
    """
    started = []

    def start(folder, engine="SlowEngine"):
        told = {"conftest": __file__, "course": str(course.root), "folder": str(folder.root)}
        process = subprocess.Popen(
            [sys.executable, "-c", GRADER.format(**told, engine=engine)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def recorded():
    """How many submissions of a class have their record."""
    return lambda folder: len(list((folder.root / "records").rglob("*.json")))


@pytest.fixture
def until_recorded(recorded):
    """Wait until a run has recorded so many submissions: until_recorded(folder, 3)."""

    def wait(folder, number):
        until = time.monotonic() + 60
        while recorded(folder) < number:
            assert time.monotonic() < until, "the grader recorded nothing within a minute"
            time.sleep(0.01)

    return wait


@pytest.fixture(scope="session")
def prepared(chapter, tmp_path_factory):
    """A class folder whose gradebook knows the chapter: made once, it takes nbgrader seconds."""
    folder = ClassFolder(tmp_path_factory.mktemp("prepared") / "class")
    recording.prepare(folder, chapter)
    return folder.root


@pytest.fixture
def class_of(tmp_path, prepared):
    """A class folder with one notebook a student: class_of(ada=notebook, bob=b"not a notebook")."""

    def make(**students):
        folder = ClassFolder(tmp_path / "a class")
        if not folder.root.exists():
            shutil.copytree(prepared, folder.root)
        for student, notebook in students.items():
            home = folder.submission(student, EXAMPLE)
            home.mkdir(parents=True, exist_ok=True)
            data = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
            (home / f"{EXAMPLE}.ipynb").write_bytes(data)
        return folder

    return make


@pytest.fixture
def command(course, engine, monkeypatch):
    """Run a command as `python -m autograde` would, on the example course: its exit status."""
    for module in ("choose", "check", "regrade"):
        monkeypatch.setattr(f"autograde.{module}.Course", lambda: course)
    for function in (grade.grade_chapter, regrade.regrade_chapter):
        defaults = {**function.__kwdefaults__, "engine": engine}
        monkeypatch.setattr(function, "__kwdefaults__", defaults)
    return lambda *words: cli.main([*map(str, words)])


@pytest.fixture
def own_cell():
    """A cell that the learner added."""
    return lambda source, kind="code": (
        nbformat.v4.new_code_cell(source)
        if kind == "code"
        else nbformat.v4.new_markdown_cell(source)
    )

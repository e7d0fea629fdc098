"""Two hundred submissions, a fifth of them hostile or broken: every row is what it should be.

The hostile ones are answers from `hostile/`; the broken ones are files that no grader could read,
or that need mending. One worker and two give the same rows, and so does a run that was killed.
"""

import json
import os
import shutil
import signal
from pathlib import Path

import yaml

from autograde.grade import grade_chapter
from autograde.plan import ClassFolder
from autograde.record import scores
from autograde.report import table

SLUG = "90-example"
HOSTILE = Path(__file__).parent / "hostile"
ROW_MEANS = "def row_means(x):\n    return x.mean(-1)"
# name: (answer to 90-double, points for it)
HONEST = {
    "right": ("def double(x):\n    return 2 * x", 3),
    "lambda": ("double = lambda x: x + x", 3),
    "noisy": ("print('working')\ndef double(x):\n    print(x)\n    return x + x", 3),
    "wrong": ("def double(x):\n    return x ** 2", 0),
    "visible": ("def double(x):\n    return {3: 6, 5: 10}[x]", 1),
    "crashes": ("def double(x):\n    return x.nothing", 0),
    "stub": (None, 0),
    "typo": ("def double(x)\n    return 2 * x", 0),
}


def hostile() -> list[dict]:
    """Twenty attacks of all kinds that need no preparation and no waiting."""
    found = []
    for file in sorted(HOSTILE.glob("*.yml")):
        cases = yaml.safe_load(file.read_text(encoding="utf-8"))
        plain = [
            case
            for case in cases
            if "answer" in case
            and "prelude" not in case
            and not case.get("slow")
            and case.get("exercise", "90-double") == "90-double"
            and not any("{" + word + "}" in case["answer"] for word in PLACES)
        ]
        found += plain[:4]
    return found[:20]


PLACES = ("class", "root", "home", "port", "victim", "driver", "secret")
BROKEN = {
    "empty": (b"", None),
    "no-json": (b"{", None),
    "merge": (b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> x\n", None),
    "list": (b"[]", None),
    "no-cells": (b"{}", None),
}


def wanted(class_of, filled, copies: int) -> tuple[ClassFolder, dict[str, float | None]]:
    """A class, and the points due to each (None: it can't be graded)."""
    due, sent = {}, {}
    for n in range(copies):
        for name, (answer, points) in HONEST.items():
            told = {"row_means": ROW_MEANS, **({"double": answer} if answer else {})}
            sent[f"{name}{n}"], due[f"{name}{n}"] = filled(**told), points + 3
    for n, case in enumerate(hostile()[:copies]):
        sent[f"hostile{n}"] = filled(double=case["answer"], row_means=ROW_MEANS)
        due[f"hostile{n}"] = case.get("points", 0) + 3
    for n in range(copies // len(BROKEN)):
        for name, (data, points) in BROKEN.items():
            sent[f"{name}{n}"], due[f"{name}{n}"] = data, points
    return class_of(**{name.replace("-", "_"): book for name, book in sent.items()}), {
        name.replace("-", "_"): points for name, points in due.items()
    }


def points_of(folder: ClassFolder) -> dict[str, float]:
    return {
        who: sum(one.points for one in line.values()) for who, line in scores(folder, SLUG).items()
    }


def without_times(folder: ClassFolder, student: str) -> dict:
    record = json.loads(folder.record(student, SLUG).read_text())
    record.pop("seconds", None)
    for test in record.get("tests", []):
        test.pop("seconds")
    return record


def test_every_row_of_a_large_class_is_right_and_explained(class_of, filled, course, impatient):
    folder, due = wanted(class_of, filled, 20)
    assert len(due) == 200
    assert len(hostile()) == 20
    outcome = grade_chapter(folder, SLUG, course=course, engine=impatient, workers=2)
    assert set(outcome.problems) == {who for who, points in due.items() if points is None}
    assert points_of(folder) == {who: points for who, points in due.items() if points is not None}
    rows = {row.student: row for row in table(folder, outcome.chapter).rows}
    assert set(rows) == set(due)
    for student, row in rows.items():
        lost = row.reason is None and row.points < 6
        assert row.reason or not lost or row.in_short, student
    again = grade_chapter(folder, SLUG, course=course, engine=impatient, workers=2)
    assert again.graded == []
    assert len(again.unchanged) == 180


def test_two_workers_killed_on_the_way_write_what_one_writes(
    class_of, filled, course, impatient, tmp_path, grader, until_recorded, recorded
):
    killed, due = wanted(class_of, filled, 5)
    whole = ClassFolder(tmp_path / "whole")
    shutil.copytree(killed.root, whole.root)
    for number in (5, 30):
        process = grader(killed, impatient.__name__)
        until_recorded(killed, number)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert number <= recorded(killed) < len(due)
    finished = grader(killed, impatient.__name__)
    finished.communicate(timeout=300)
    assert finished.returncode == 1  # some can't be graded, as they should
    grade_chapter(whole, SLUG, course=course, engine=impatient, workers=1)
    assert points_of(killed) == points_of(whole)
    assert points_of(whole) == {who: points for who, points in due.items() if points is not None}
    for student in due:
        assert without_times(killed, student) == without_times(whole, student)

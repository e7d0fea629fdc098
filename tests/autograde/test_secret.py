"""The class's own key, and the random numbers that come from it."""

import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from autograde.grade import grade_chapter
from autograde.plan import ClassFolder
from autograde.run import Engine
from autograde.secret import NAME, class_key, seed_for

SLUG = "90-example"


@pytest.fixture
def folder(tmp_path):
    return ClassFolder(tmp_path)


def test_the_key_is_made_once_and_is_for_its_owner(folder):
    with ThreadPoolExecutor(16) as threads:
        keys = set(threads.map(lambda _: class_key(folder), range(64)))
    (key,) = keys
    assert len(key) == 64
    assert stat.S_IMODE((folder.root / NAME).stat().st_mode) == 0o600
    assert [path.name for path in folder.root.iterdir()] == [NAME]


def test_seeds_differ_by_submission_and_by_class(folder, tmp_path):
    other = ClassFolder(tmp_path / "other")
    other.root.mkdir()
    seeds = [seed_for(one, what) for one in (folder, other) for what in ("ada's", "bob's")]
    assert len(set(seeds)) == 4
    assert seed_for(folder, "ada's") == seeds[0]


def test_each_submission_is_judged_with_a_seed_of_its_own(class_of, filled, course, engine):
    seeds = {}

    class Noting(engine):
        def run(self, chapter, answers, *, seed, **options):
            seeds.setdefault(answers["90-double"], set()).add(seed)
            return super().run(chapter, answers, **options)

    answers = [f"def double(x):\n    return {n} * x / {n} * 2" for n in (1, 2)]
    folder = class_of(ada=filled(double=answers[0]), bob=filled(double=answers[1]))
    for _ in range(2):  # and the same one when it is graded again
        grade_chapter(folder, SLUG, course=course, engine=Noting, again=True)
    assert set(seeds) == set(answers)
    assert {len(found) for found in seeds.values()} == {1}
    assert len(set.union(*seeds.values())) == 2


def test_a_tests_own_random_numbers_come_from_the_seed(chapter):
    double = chapter.exercises["90-double"]
    draw = '"""Draws."""\nraise AssertionError(f"drew {torch.rand(1).item()}")'
    test = replace(double.tests[0], text=draw)
    drawing = replace(chapter, exercises={"90-double": replace(double, tests=(test,))})
    with Engine() as engine:
        drew = [
            engine.run(drawing, {"90-double": "def double(x): pass"}, seed=seed)[test.id].message
            for seed in ("one", "two", "one")
        ]
    assert drew[0] == drew[2] != drew[1]
    assert "drew 0." in drew[0]

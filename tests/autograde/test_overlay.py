"""A class with hidden tests of its own, from a folder outside the course."""

import re

import pytest

from autograde.audit import audit
from autograde.chapters import ROOT, Course
from autograde.feedback import write_feedback
from autograde.grade import grade_chapter
from autograde.overlay import NoOverlay, with_overlay
from autograde.plan import source_digest
from autograde.record import scores
from autograde.run import Engine
from autograde.source import load
from autograde.source_cells import SourceError

SLUG = "90-example"
FRONT = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

Ours alone.
"""
CELL = """
```{{code-cell}}
---
role: {role}
test: {test}
points: {points}
---
\"\"\"What it checks.\"\"\"
{code}
```
"""
# Learnt by heart from the course's own numbers, which everybody can read.
BY_HEART = "def double(x):\n    return {3: 6, 5: 10, 41: 82}[int(x)]"
RIGHT = "def double(x):\n    return x + x"


def cell(test, points, code, role="test"):
    return CELL.format(test=test, points=points, code=code, role=role)


OTHER_NUMBERS = cell("90-double-general", 2, 'check.equal(double(7), 14, "double of a number")')
ONE_MORE = cell("90-double-negative", 4, 'check.equal(double(-1), -2, "double(-1)")')


@pytest.fixture
def overlaid(course, tmp_path):
    """The example course with an overlay of these cells: overlaid(ONE_MORE)."""

    def make(*cells, name=f"{SLUG}.md"):
        folder = tmp_path / "own tests"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(FRONT + "".join(cells))
        return with_overlay(course, folder)

    return make


def points(course, answer):
    chapter = load(SLUG, course)
    with Engine() as engine:
        found = engine.run(chapter, {"90-double": answer}, exercises=["90-double"])
    return {test: verdict.score for test, verdict in found.items()}


def test_a_known_test_has_another_hidden_part(course, overlaid):
    assert points(course, BY_HEART) == {"90-double-by-hand": 1, "90-double-general": 2}
    mine = overlaid(OTHER_NUMBERS)
    assert points(mine, BY_HEART) == {"90-double-by-hand": 1, "90-double-general": 0}
    assert points(mine, RIGHT) == {"90-double-by-hand": 1, "90-double-general": 2}
    (test,) = [one for one in load(SLUG, mine).cells if one.id == "90-double-general"]
    assert "canary" not in test.text
    assert "double(7)" not in test.visible_text + test.stub_text
    (theirs,) = [one for one in load(SLUG, course).cells if one.id == "90-double-general"]
    assert test.stub_text == theirs.stub_text  # what students have read


def test_a_new_test_is_judged_recorded_and_shown(overlaid, class_of, filled):
    mine = overlaid(ONE_MORE)
    folder = class_of(ada=filled(double=BY_HEART), bob=filled(double=RIGHT))
    assert grade_chapter(folder, SLUG, course=mine).problems == {}
    found = {who: line["90-double-negative"].points for who, line in scores(folder, SLUG).items()}
    assert found == {"ada": 0, "bob": 4}
    assert load(SLUG, mine).exercises["90-double"].points == 7


def test_a_test_that_students_never_saw_is_hidden_from_its_first_word(class_of, filled, overlaid):
    mine = overlaid(ONE_MORE)
    folder = class_of(ada=filled(double="def double(x):\n    return abs(2 * x)"))
    grade_chapter(folder, SLUG, course=mine)
    record = folder.read_record("ada", SLUG)
    told = {test["test"]: (test["state"], test["part"]) for test in record["tests"]}
    assert told["90-double-negative"] == ("fail", "hidden")
    assert record["notes"] == []  # nobody has deleted what was never in the notebook
    write_feedback(folder, SLUG, course=mine)
    page = folder.feedback("ada", SLUG).read_text()
    assert "This check is hidden" in page
    assert "What it checks." not in page
    assert "-2" not in page.partition("<body>")[2]


def test_a_changed_overlay_is_a_changed_chapter(course, overlaid):
    digests = {source_digest(course, SLUG)}
    digests.add(source_digest(overlaid(ONE_MORE), SLUG))
    digests.add(source_digest(overlaid(OTHER_NUMBERS), SLUG))
    assert len(digests) == 3


def test_a_chapter_without_a_file_is_as_it_was(tmp_path):
    (tmp_path / "00-warm-up.md").write_text(FRONT)
    course = with_overlay(Course(), tmp_path)
    assert load("02-attention", course) == load("02-attention")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (cell("90-double-general", 3, "pass"), "has 3 points, and 2 in the chapter"),
        (cell("90-triple-general", 3, "pass"), "continues no exercise id"),
        (ONE_MORE + ONE_MORE, "'90-double-negative' is used twice"),
        (cell("90-double-general", 2, "pass", role="demo"), "test cells and Markdown only"),
        (cell("90-double-general", 0, "pass"), "needs points above 0"),
    ],
)
def test_a_slip_in_the_overlay_is_named(overlaid, cells, words):
    with pytest.raises(SourceError, match=words):
        load(SLUG, overlaid(cells))


def test_a_folder_that_cannot_be_meant_is_an_error(course, tmp_path, overlaid):
    with pytest.raises(NoOverlay, match="there is no folder"):
        with_overlay(course, tmp_path / "nowhere")
    with pytest.raises(NoOverlay, match="has no file; one is named like 90-example"):
        with_overlay(course, tmp_path)
    with pytest.raises(NoOverlay, match="files for no chapter: 90-exampel; written chapters: 90"):
        overlaid(ONE_MORE, name="90-exampel.md")


def test_the_example_on_the_page_for_teachers_judges_all_known_answers_rightly(tmp_path):
    page = (ROOT / "pages" / "grading.md").read_text()
    (example,) = re.findall(r"^````markdown\n(.*?)^````$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "02-attention.md").write_text(example)
    mine = with_overlay(Course(), tmp_path)
    assert "five equal scores" in load("02-attention", mine).exercises["02-softmax"].tests[0].text
    with Engine() as engine:
        (found,) = audit("02-attention", engine, mine, only=["02-softmax"])
    assert found.problems == []


def test_commands_take_it(course, overlaid, class_of, filled, command, capsys):
    folder = class_of(ada=filled(double=RIGHT))
    mine = overlaid(ONE_MORE).overlay
    for words in (["grade"], ["report"]):
        assert command(*words, "90", "--class-dir", folder.root, "--overlay", mine) == 0
        assert "90-example: An example, 12 points" in capsys.readouterr().out
    assert command("grade", "--class-dir", folder.root, "--overlay", mine / "no") == 2
    assert "there is no folder" in capsys.readouterr().err


def test_the_class_may_name_it_once_for_all_commands(
    course, overlaid, class_of, filled, command, capsys
):
    folder = class_of(ada=filled(double=RIGHT))
    rules = folder.root / "course.toml"
    overlaid(ONE_MORE)  # in "own tests", beside the class
    rules.write_text('overlay = "../own tests"')
    for words in (["grade"], ["report"]):
        assert command(*words, "90", "--class-dir", folder.root) == 0
        assert "90-example: An example, 12 points" in capsys.readouterr().out
    for named, told in [('"elsewhere"', "no folder"), ("3", "overlay is a folder, not 3")]:
        rules.write_text(f"overlay = {named}")
        assert command("report", "90", "--class-dir", folder.root) == 2
        assert told in capsys.readouterr().err

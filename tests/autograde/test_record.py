"""The gradebook and the autograded notebook: right scores, nothing lost, nothing believed."""

import datetime
import logging
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from functools import partial

import nbformat
import pytest
from nbconvert.filters import markdown2html
from nbgrader.utils import determine_grade, is_grade

from autograde import record as recording
from autograde.autograded import harmless
from autograde.extract import Extracted
from autograde.plan import ClassFolder
from autograde.record import GradebookError, gradebook, scores, submitted_at
from autograde.run import Verdict

SLUG = "90-example"
NOW = datetime.datetime(2026, 11, 29, 12, 0, tzinfo=datetime.UTC)
FOUND = Extracted(
    answers={"90-double": "def double(x):\n    return 2 * x"}, written={"90-why": "Other axes."}
)
VERDICTS = {
    "90-double-by-hand": Verdict("90-double-by-hand", "90-double", 1.0, "pass"),
    "90-double-general": Verdict("90-double-general", "90-double", 2.0, "fail", "expected 82"),
    "90-row-means-by-hand": Verdict(
        "90-row-means-by-hand", "90-row-means", 3.0, "not written", "not written yet"
    ),
}


@pytest.fixture
def folder(class_of):
    return class_of(ada=b"{}")


def write_one(folder, chapter, student="ada", found=FOUND, verdicts=VERDICTS, new=False):
    with recording.recorder(folder, chapter) as recorder:
        recorder.record(student, found, verdicts, submitted=NOW, new=new)


@pytest.fixture
def save(folder, chapter):
    def run(student="ada", found=FOUND, verdicts=VERDICTS, new=False):
        write_one(folder, chapter, student, found, verdicts, new=new)
        return scores(folder, SLUG)[student]

    return run


def by_teacher(folder, ident, points):
    with gradebook(folder) as book:
        grade = book.find_grade(ident, SLUG, SLUG, "ada")
        grade.manual_score, grade.needs_manual_grade = points, False
        book.db.commit()


def dump(folder):
    """All rows of the gradebook, without the random ids that nbgrader gives."""
    with sqlite3.connect(folder.gradebook) as db:
        return list(
            db.execute(
                "select s.student_id, s.timestamp, c.name, g.auto_score, g.manual_score, "
                "g.needs_manual_grade from grade g join base_cell c on g.cell_id = c.id "
                "join submitted_notebook n on g.notebook_id = n.id "
                "join submitted_assignment s on n.assignment_id = s.id order by 1, 3"
            )
        )


# Scores


def test_the_gradebook_holds_what_the_tests_gave(save):
    line = save()
    assert {name: score.auto for name, score in line.items()} == {
        "90-double-by-hand": 1.0,
        "90-double-general": 0.0,
        "90-row-means-by-hand": 0.0,
        "90-why": None,
    }
    assert {name: score.out_of for name, score in line.items()} == {
        "90-double-by-hand": 1.0,
        "90-double-general": 2.0,
        "90-row-means-by-hand": 3.0,
        "90-why": 2.0,
    }
    assert [name for name, score in line.items() if score.needs_manual_grade] == ["90-why"]


def test_a_blank_written_answer_is_worth_nothing_and_nobody_has_to_read_it(save):
    score = save(found=Extracted(answers=FOUND.answers))["90-why"]
    assert (score.points, score.needs_manual_grade) == (0.0, False)


def test_the_autograded_notebook_scores_the_same_when_nbgrader_reads_it(save, folder):
    line = save()
    notebook = nbformat.read(folder.autograded("ada", SLUG), as_version=4)
    nbformat.validate(notebook)
    log = logging.getLogger("nbgrader")
    read = {
        cell.metadata.nbgrader.grade_id: determine_grade(cell, log)[0]
        for cell in notebook.cells
        if is_grade(cell)
    }
    assert read == {name: score.auto for name, score in line.items()}


def test_nbgrader_too_sees_that_a_written_answer_is_blank(save, folder):
    save(found=Extracted())
    notebook = nbformat.read(folder.autograded("ada", SLUG), as_version=4)
    written = next(
        c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "90-why"
    )
    assert determine_grade(written) == (0, 2.0)


def test_the_autograded_notebook_is_written_as_nbformat_writes_it(save, folder):
    """It is put together from pieces; read and written whole, it must not change."""
    save(found=Extracted(FOUND.answers, {"90-why": "Łuk\n\n1 < 2"}, extra=("import math", "x = 1")))
    text = folder.autograded("ada", SLUG).read_text()
    assert nbformat.writes(nbformat.reads(text, as_version=4)) == text


def test_a_gradebook_that_takes_nothing_says_what_to_do(save, folder, chapter, monkeypatch):
    monkeypatch.setattr("sqlite3.dbapi2.connect", partial(sqlite3.connect, timeout=0))
    with (
        recording.recorder(folder, chapter) as recorder,
        sqlite3.connect(folder.gradebook) as other,
    ):
        other.execute("begin exclusive")
        with pytest.raises(GradebookError, match=r"gradebook\.db cannot be written.*formgrader"):
            recorder.record("ada", FOUND, VERDICTS, submitted=NOW, new=False)
        other.rollback()
        recorder.record("ada", FOUND, VERDICTS, submitted=NOW, new=False)
    assert scores(folder, SLUG)["ada"]["90-double-by-hand"].points == 1.0


def test_recording_twice_changes_nothing(save, folder):
    save()
    before, notebook = dump(folder), folder.autograded("ada", SLUG).read_bytes()
    save()
    assert dump(folder) == before
    assert folder.autograded("ada", SLUG).read_bytes() == notebook


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "</div><img src=x onerror=alert(1)>",
        "<!-- -->",
        "[see](java&#115;cript:alert(1))",
        "![](http://elsewhere/picture.png)",
        "[see]\n\n[see]: javascript:alert(1)",
        "<javascript:alert(1)>",
    ],
)
def test_a_written_answer_cannot_act_on_the_page_that_a_teacher_opens(text):
    """Rendered as nbgrader's pages do it: no tag of the learner's; an address may be a link."""
    page = markdown2html(harmless(text))
    assert not re.search(r"<(?!/?(?:p|a)\b)[a-z!/]", page), page
    assert not re.search(r'href="(?!https?://)', page), page


def test_mathematics_and_code_survive_being_made_harmless():
    text = "For $a < b$ the weights are `w[0] < w[1]`, see *eq. 1*."
    assert harmless(text) == text


def test_a_helper_of_the_learner_stands_after_the_setup(save, folder):
    save(found=Extracted(answers=FOUND.answers, extra=("import math",)))
    sources = [c.source for c in nbformat.read(folder.autograded("ada", SLUG), 4).cells]
    assert (
        sources.index("import math")
        == sources.index("import torch\n\nfrom plainformer import check") + 1
    )


def test_the_time_is_kept_in_utc(save, folder):
    save()
    with gradebook(folder) as book:
        assert book.find_submission(SLUG, "ada").timestamp == datetime.datetime(2026, 11, 29, 12)


def test_a_name_of_any_letters_is_a_student(save):
    assert save(student="Zoë Łuk [2]; drop table student")["90-double-by-hand"].points == 1.0


# What a teacher gave


def test_manual_scores_survive_a_second_grading(save, folder):
    save()
    by_teacher(folder, "90-why", 1.5)
    by_teacher(folder, "90-double-general", 0.5)
    line = save()
    assert (line["90-why"].points, line["90-double-general"].points) == (1.5, 0.5)
    assert not any(score.needs_manual_grade for score in line.values())


def test_new_work_asks_for_another_look_but_keeps_the_score(save, folder):
    save()
    by_teacher(folder, "90-why", 1.5)
    score = save(new=True)["90-why"]
    assert (score.points, score.needs_manual_grade) == (1.5, True)


# A chapter that changes during the term


@pytest.fixture
def no_release(monkeypatch, fresh_release):
    """Changing the chapter costs no run of nbgrader's generate_assignment."""
    monkeypatch.setattr(recording, "student_notebook", lambda chapter: fresh_release)


def without(chapter, ident):
    kept = tuple(cell for cell in chapter.cells if cell.id != ident)
    return replace(chapter, cells=kept, written=())


@pytest.mark.usefixtures("no_release")
def test_a_chapter_may_grow_after_somebody_submitted(save, folder, chapter):
    smaller = without(chapter, "90-why")
    fresh = ClassFolder(folder.root / "fresh")
    recording.prepare(fresh, smaller)
    write_one(fresh, smaller)
    assert "90-why" not in scores(fresh, SLUG)["ada"]
    recording.prepare(fresh, chapter)
    write_one(fresh, chapter)
    line = scores(fresh, SLUG)["ada"]
    assert line["90-why"].needs_manual_grade
    assert line["90-double-by-hand"].points == 1.0


@pytest.mark.usefixtures("no_release")
def test_a_removed_cell_leaves_the_gradebook_with_its_scores(save, folder, chapter):
    save()
    recording.prepare(folder, without(chapter, "90-why"))
    assert set(scores(folder, SLUG)["ada"]) == set(VERDICTS)


@pytest.mark.usefixtures("no_release")
def test_a_cell_that_a_teacher_marked_is_not_removed(save, folder, chapter):
    save()
    by_teacher(folder, "90-why", 2.0)
    with pytest.raises(GradebookError, match=r"cell 90-why, .* keep a copy of the gradebook"):
        recording.prepare(folder, without(chapter, "90-why"))
    assert scores(folder, SLUG)["ada"]["90-why"].points == 2.0


# The file itself


def test_a_gradebook_is_whole_even_where_alembic_is_not_on_the_path(tmp_path):
    folder = ClassFolder(tmp_path)
    code = (
        "import sys; from pathlib import Path; from autograde.plan import ClassFolder\n"
        "from autograde.record import gradebook\n"
        "with gradebook(ClassFolder(Path(sys.argv[1]))): pass"
    )
    bare = {**os.environ, "PATH": "/usr/bin:/bin"}
    assert shutil.which("alembic", path=bare["PATH"]) is None
    subprocess.run([sys.executable, "-c", code, str(folder.root)], env=bare, check=True)
    with sqlite3.connect(folder.gradebook) as db:
        assert len(db.execute("select version_num from alembic_version").fetchall()) == 1


def test_a_gradebook_that_could_not_be_made_leaves_nothing_behind(tmp_path, monkeypatch):
    folder = ClassFolder(tmp_path)

    def fail():
        raise FileNotFoundError("alembic")

    monkeypatch.setattr("nbgrader.api.get_alembic_version", fail)
    with pytest.raises(FileNotFoundError), gradebook(folder):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_graded_has_no_scores(folder, tmp_path):
    assert scores(folder, SLUG) == {}
    assert scores(ClassFolder(tmp_path / "nowhere"), SLUG) == {}


# When it came in


@pytest.mark.parametrize(
    ("stamp", "hour"), [("2026-11-20 10:30:00 UTC", 10), ("2026-11-20 10:30:00.123456 +0200", 8)]
)
def test_a_timestamp_file_tells_the_time(tmp_path, stamp, hour):
    (tmp_path / "timestamp.txt").write_text(stamp)
    (tmp_path / "a.ipynb").write_text("")
    moment, notes = submitted_at(tmp_path / "a.ipynb")
    assert (moment.day, moment.hour, notes) == (20, hour, [])


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-13-45", "\x00", "9" * 400])
def test_a_bad_timestamp_costs_nothing_and_is_mentioned(tmp_path, stamp):
    (tmp_path / "timestamp.txt").write_text(stamp)
    (tmp_path / "a.ipynb").write_text("")
    os.utime(tmp_path / "a.ipynb", (1_700_000_000, 1_700_000_000))
    moment, notes = submitted_at(tmp_path / "a.ipynb")
    assert moment.timestamp() == 1_700_000_000
    assert "which is no time" in notes[0]


def test_a_gradebook_that_cannot_be_opened_says_what_to_look_at(tmp_path):
    folder = ClassFolder(tmp_path)
    folder.gradebook.mkdir()
    with pytest.raises(GradebookError, match=r"gradebook\.db cannot be opened.*disk has room"):
        recording.graded_students(folder, SLUG)

"""The feedback page: our words only, nothing hidden, nothing of the learner's as HTML."""

import json
import re

import pytest

from autograde.doctor import chromium_path
from autograde.feedback import STATES, feedback_page, write_feedback
from autograde.grade import grade_chapter
from autograde.record import Score, gradebook

SLUG = "90-example"
SCORES = {
    "90-double-by-hand": Score(1.0, 1.0, 1.0, None, False),
    "90-double-general": Score(0.0, 2.0, 0.0, None, False),
    "90-row-means-by-hand": Score(0.0, 3.0, 0.0, None, False),
    "90-why": Score(0.0, 2.0, None, None, True),
}


@pytest.fixture
def record():
    def test(name, exercise, points, state, message=""):
        return {
            "test": name, "exercise": exercise, "points": points, "state": state,
            "message": message, "rule": None, "mistake": None, "seconds": 0.1,
        }  # fmt: skip

    return {
        "student": "ada",
        "chapter": SLUG,
        "file": f"{SLUG}.ipynb",
        "submitted": "2026-11-29T12:00:00+00:00",
        "graded": True,
        "notes": [],
        "written": ["90-why"],
        "tests": [
            test("90-double-by-hand", "90-double", 1.0, "pass"),
            test("90-double-general", "90-double", 2.0, "fail", "double(5): expected 10, got 25"),
            test("90-row-means-by-hand", "90-row-means", 3.0, "not written"),
        ],
    }


def words(page):
    """What a reader sees, without tags."""
    body = page.partition("<body>")[2]
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_a_page_says_what_was_checked_how_it_went_and_what_is_wrong(chapter, record):
    seen = words(feedback_page(chapter, record, SCORES))
    assert "1 of 8 points, 1 still to be read by a person" in seen
    assert "Double: 1 of 3 points" in seen
    assert "✓ passed , 1 of 1: By hand: twice three is six." in seen
    assert "✗ not yet , 0 of 2: Twice any number; then, hidden, others." in seen
    assert "double(5): expected 10, got 25" in seen
    assert "○ not written yet , 0 of 3" in seen
    assert "Why: 0 of 2 points … still to be read by a person" in seen


@pytest.mark.parametrize("state", ["fail", "error", "timeout", "killed"])
def test_every_state_but_pass_shows_its_message(chapter, record, state):
    record["tests"][0] |= {"state": state, "message": "what went wrong"}
    seen = words(feedback_page(chapter, record, SCORES))
    assert f"{STATES[state][1]} , 1 of 1" in seen
    assert "what went wrong" in seen


def test_no_code_of_a_test_is_on_the_page(chapter, record):
    record["tests"][1] |= {
        "state": "error",
        "message": "TypeError: bad\n  in line 5 of <90-double-general>: secret = canary_of_the_hid",
    }
    page = feedback_page(chapter, record, SCORES)
    assert "TypeError: bad" in page
    assert "canary_of_the_hid" not in page
    assert "check.equal" not in page


def test_a_line_of_the_learners_own_code_may_be_quoted(chapter, record):
    record["tests"][1] |= {
        "state": "error",
        "message": "TypeError: bad\n  in line 2 of <90-double>: return x + 'a'",
    }
    assert "return x + &#x27;a&#x27;" in feedback_page(chapter, record, SCORES)


@pytest.mark.parametrize("place", ["student", "file", "note", "message", "comment"])
def test_nothing_that_a_learner_writes_becomes_html(chapter, record, place):
    attack = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>"
    scores = dict(SCORES)
    if place == "note":
        record["notes"] = [attack]
    elif place == "message":
        record["tests"][1]["message"] = attack
    elif place == "comment":
        scores["90-why"] = Score(2.0, 2.0, None, 2.0, False, comment=attack)
    else:
        record[place] = attack
    page = feedback_page(chapter, record, scores)
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "<img" not in page


def test_braces_in_a_message_are_only_braces(chapter, record):
    record["tests"][1]["message"] = "{student} {0} {style}"
    assert "{student} {0} {style}" in feedback_page(chapter, record, SCORES)


def test_the_page_asks_nothing_of_the_network(chapter, record):
    page = feedback_page(chapter, record, SCORES)
    assert not re.search(r"https?:|src=|href=|url\(|@import", page)
    assert "default-src 'none'" in page


def test_a_persons_points_and_comment_are_shown_as_such(chapter, record):
    scores = SCORES | {
        "90-why": Score(1.5, 2.0, None, 1.5, False, comment="Well said."),
        "90-double-general": Score(2.0, 2.0, 0.0, 2.0, False),
    }
    seen = words(feedback_page(chapter, record, scores))
    assert "Why: 1.5 of 2 points read by a person Well said." in seen
    assert "These points were given by a person." in seen
    assert "Double: 3 of 3 points" in seen


# From a graded class


@pytest.fixture
def folder(class_of, filled, course, engine):
    made = class_of(
        ada=filled(double="def double(x):\n    return wrong", why="<b>bold</b>"), broken=b"{"
    )
    grade_chapter(made, SLUG, course=course, engine=engine)
    return made


def test_everybody_who_was_graded_has_a_page_where_nbgrader_looks_for_it(folder, course):
    assert write_feedback(folder, SLUG, course=course) == (["ada"], ["broken"])
    page = folder.root / "feedback" / "ada" / SLUG / f"{SLUG}.html"
    assert "expected 6, got 9" in page.read_text(encoding="utf-8")
    assert "bold" not in page.read_text(encoding="utf-8")


def test_a_comment_in_the_gradebook_reaches_the_page(folder, course):
    with gradebook(folder) as book:
        book.find_comment("90-why", SLUG, SLUG, "ada").manual_comment = "Say which axis."
        book.db.commit()
    write_feedback(folder, SLUG, course=course)
    assert "Say which axis." in folder.feedback("ada", SLUG).read_text(encoding="utf-8")


def test_the_command_says_who_has_no_page(folder, command, capsys):
    assert command("feedback", "--class-dir", folder.root, "--json") == 1
    said = json.loads(capsys.readouterr().out)["chapters"]
    assert said == [{"chapter": SLUG, "written": ["ada"], "not graded": ["broken"]}]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_fits_a_phone(chapter, record, tmp_path, scheme):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    browser_path = chromium_path()
    assert browser_path, "this test needs Chromium: install it, or set CHROMIUM=/path/to/chrome"
    record["notes"] = ["a note that is long " * 10]
    record["tests"][1]["message"] = "w" * 400
    path = tmp_path / "page.html"
    path.write_text(feedback_page(chapter, record, SCORES), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(
            color_scheme=scheme, viewport={"width": 360, "height": 740}, bypass_csp=True
        )
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        results = Axe().run(page)
        browser.close()
    assert results.violations_count == 0, results.generate_report()

"""The feedback page: our words only, nothing hidden, nothing of the learner's as HTML."""

import re
from dataclasses import asdict
from html import unescape

import pytest

from autograde.doctor import chromium_path
from autograde.feedback_page import STATES, feedback_page
from autograde.feedback_words import BROKEN
from autograde.record import Score
from autograde.run import Engine, Limits
from plainformer.messages import MISTAKES, RULES

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
            "message": message, "rule": None, "mistake": None, "seconds": 0.1, "part": "visible",
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
    assert "received 2026-11-29 12:00 UTC." in seen
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


def test_a_failed_visible_part_says_that_the_hidden_one_was_not_reached(chapter, record):
    seen = words(feedback_page(chapter, record, SCORES))
    assert "The visible part failed: you can run it yourself" in seen
    assert "The hidden part was not reached. double(5): expected 10, got 25" in seen


def test_a_test_that_hides_nothing_says_so(chapter, record):
    record["tests"][0] |= {"state": "fail", "message": "double(3): expected 6, got 9"}
    seen = words(feedback_page(chapter, record, SCORES))
    assert "All of this check is visible: you can run it yourself in your notebook." in seen


HIDDEN = {
    "state": "fail",
    "part": "hidden",
    "rule": "values",
    "mistake": "unscaled",
    "message": "of secret41: 2 of 3 entries differ, the first at [1].\n  expected secret42\n"
    "       got secret43\n  called with [secret44]  (case 1 of 3)\n  " + MISTAKES["unscaled"],
}


@pytest.mark.parametrize(
    ("changed", "words_shown"),
    [
        ({}, "What is wrong: the shape is right and some numbers are not."),
        ({}, MISTAKES["unscaled"]),
        ({}, "The visible part passed; the hidden part, with other numbers, did not."),
        ({"mistake": "secret45", "rule": "secret46"}, "The visible part passed"),
        (
            {
                "rule": "crashed",
                "message": "of secret41: the call stopped with KeyError: secret42\n"
                "  in line 6 of f:  return seen[len(x)]\n  called with [secret44]",
            },
            "A call stopped with KeyError in line 6 of your code.",
        ),
        (
            {
                "state": "error",
                "rule": None,
                "message": "ValueError: secret41\n  in line 2 of <x>: y",
            },
            "A call stopped with ValueError in line 2 of your code.",
        ),
        (
            {"state": "error", "rule": None, "message": "secret41: secret42\nsecret43"},
            "A call stopped with an error.",
        ),
        (
            {
                "state": "error",
                "rule": None,
                "message": "E: \n  in line 41424344 of <90-double>: x",
            },
            "A call stopped with an error.",
        ),
        ({"state": "timeout", "rule": None, "message": "secret41"}, "ran out of time"),
        ({"state": "killed", "rule": None, "message": "sent secret41"}, "ended before it could"),
    ],
)
def test_of_a_hidden_part_only_what_was_written_beforehand_is_told(
    chapter, record, changed, words_shown
):
    for part in ("hidden", None, "a later version's"):
        record["tests"][1] |= HIDDEN | changed | {"part": part}
        page = feedback_page(chapter, record, SCORES)
        assert "secret" not in page
        assert "4142" not in page
        assert part != "hidden" or words_shown in unescape(words(page))


def test_no_answer_that_fails_a_hidden_part_learns_its_numbers(engine_on, chapter, record):
    for verdict in engine_on("def double(x):\n    return 2 * x if x < 41 else {broken}"):
        record["tests"][1] |= verdict
        page = feedback_page(chapter, record, SCORES)
        assert "The visible part passed" in page
        assert not re.search(r"\b(41|82|42)\b|a number of ours", words(page))


@pytest.fixture
def engine_on(chapter):
    """Judge an answer with each of several things in the place of {broken}."""
    ways = ["x", "None", "[x]", "1 / 0", "{}[x]", "int(f'a{x}')", "exit(x)", "torch.ones(x)"]

    def run(answer):
        with Engine(Limits(cpu=2, wall=30)) as engine:
            for way in ways:
                sent = {"90-double": answer.replace("{broken}", way)}
                found = engine.run(chapter, sent, exercises=["90-double"])
                yield asdict(found["90-double-general"])

    return run


def test_every_rule_has_words_for_a_hidden_part():
    assert set(BROKEN) == set(RULES)
    assert not [text for text in BROKEN.values() if "{" in text]


def test_what_stopped_the_answer_before_any_test_is_shown(chapter, record):
    words_of_python = "the answer's own cell stopped with SyntaxError: invalid syntax"
    record["tests"][1] |= {"state": "error", "part": "before", "message": words_of_python}
    seen = words(feedback_page(chapter, record, SCORES))
    assert "SyntaxError: invalid syntax" in seen
    assert "part" not in seen.partition("SyntaxError")[2].partition("Row means")[0]


def test_a_named_mistake_stands_first_and_once(chapter, record):
    text = f"scores: 4 of 6 entries differ.\n  {MISTAKES['unscaled']}"
    record["tests"][1] |= {"mistake": "unscaled", "message": text}
    page = feedback_page(chapter, record, SCORES)
    assert page.count(MISTAKES["unscaled"]) == 1
    assert page.index(MISTAKES["unscaled"]) < page.index("scores: 4 of 6 entries differ.")


def test_the_page_begins_with_a_line_an_exercise_that_leads_to_it(chapter, record):
    page = feedback_page(chapter, record, SCORES)
    contents = page.partition('<ul class="contents">')[2].partition("</ul>")[0]
    found = re.findall(
        r'aria-label="([^"]*)">(.)</span> <a href="#([^"]*)">([^<]*)</a> <span>([^<]*)<', contents
    )
    assert found == [
        ("not all points yet", "✗", "90-double", "Double", "1 of 3"),
        ("not written yet", "○", "90-row-means", "Row means", "0 of 3"),
        ("still to be read by a person", "…", "90-why", "Why", "0 of 2"),
    ]
    assert re.findall(r'<section id="([^"]*)"', page) == [ident for _, _, ident, _, _ in found]


def test_a_section_is_named_and_linked_where_the_class_names_the_book(chapter, record):
    plain = feedback_page(chapter, record, SCORES)
    assert "To reread: section 1 of the chapter, “Doubles”." in words(plain)
    assert 'href="http' not in plain
    linked = feedback_page(chapter, record, SCORES, "https://example.org/a&b")
    address = "https://example.org/a&amp;b/chapters/90-example.html#doubles"
    assert f'<a href="{address}">“Doubles”</a>' in linked


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
    assert not re.search(r"https?:|src=|url\(|@import", page)
    assert set(re.findall(r'href="(.)', page)) == {"#"}
    assert "default-src 'none'" in page


def test_a_persons_points_and_comment_are_shown_as_such(chapter, record):
    scores = SCORES | {
        "90-why": Score(1.5, 2.0, None, 1.5, False, comment="Well said."),
        "90-double-general": Score(2.0, 2.0, 0.0, 2.0, False),
    }
    seen = words(feedback_page(chapter, record, scores))
    assert "Why: 1.5 of 2 points ✓ read by a person Well said." in seen
    assert "These points were given by a person." in seen
    assert "Double: 3 of 3 points" in seen


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

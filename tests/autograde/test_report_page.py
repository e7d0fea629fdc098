"""The class report as a page: what it says, that nothing on it is active, and how it looks."""

import re

import pytest

from autograde.doctor import chromium_path
from autograde.grade import grade_chapter
from autograde.report_page import binned, report_page

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x", "row_means": "def row_means(x):\n    pass"}


@pytest.fixture
def folder(class_of, filled, course, engine):
    """Three who solve all, one wrong, one blank, one unreadable, one without the written answer."""
    sent = {f"right{n}": filled(**RIGHT, why="Other axes.") for n in range(3)}
    sent |= {"wrong": filled(double="def double(x):\n    return wrong"), "blank": filled()}
    sent |= {"broken": b"{", "bob": filled(**RIGHT)}
    folder = class_of(**sent)
    grade_chapter(folder, SLUG, course=course, engine=engine)
    return folder


@pytest.fixture
def page(folder, chapter):
    return report_page(folder, chapter)


def words(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page.partition("<body>")[2]).split())


def test_it_says_how_the_class_did(page):
    seen = words(page)
    assert "6 of 7 submissions are graded. Of 8 points the median is 6, the least 0" in seen
    assert "3 with written answers that nobody has marked yet: right0, right1, right2." in seen
    assert "Double 3 5 of 6 80% 80% " in seen  # points, attempted, solved, mean
    assert "Double values (1)" in seen


def test_who_is_not_graded_stands_there_with_the_reason(page):
    assert re.search(r"Not graded broken: \S+", words(page))


def test_an_exercise_that_everybody_solves_is_pointed_out(page):
    assert "Row means : 100% solve it" in words(page)


def test_the_histogram_is_told_in_words_too(page):
    (label,) = re.findall(r'aria-label="(People by points[^"]*)"', page)
    assert "0 to 0.8: 2" in label  # blank, and the wrong one
    assert "7.2 to 8: 0" in label
    assert sum(map(int, re.findall(r": (\d+)", label))) == 6


def test_totals_fall_into_ten_equal_parts():
    assert binned([0, 0.79, 0.8, 8, 7.9, 4], 8) == [2, 1, 0, 0, 0, 1, 0, 0, 0, 2]


def test_nothing_on_it_is_active(page, folder, chapter):
    assert "<script" not in page
    assert "default-src 'none'" in page
    record = folder.read_record("wrong", SLUG)
    record["tests"][0]["mistake"] = "<img src=x onerror=alert(1)>"
    folder.write_record(record)
    changed = report_page(folder, chapter)
    assert "<img" not in changed
    assert "&lt;img" in changed


def test_an_empty_class_has_a_page(class_of, chapter, filled, course, engine):
    folder = class_of(broken=b"{")
    grade_chapter(folder, SLUG, course=course, engine=engine)
    assert "0 of 1 submissions are graded" in words(report_page(folder, chapter))


def test_the_command_writes_it(folder, command, capsys):
    assert command("report", "90", "--class-dir", folder.root, "--html") == 1  # one is not graded
    assert str(folder.root / "report" / f"{SLUG}.html") in capsys.readouterr().out
    assert "class report" in (folder.root / "report" / f"{SLUG}.html").read_text()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_it_is_accessible_and_fits(page, tmp_path, scheme, width):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    browser_path = chromium_path()
    assert browser_path, "this test needs Chromium: install it, or set CHROMIUM=/path/to/chrome"
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        seen = browser.new_page(
            color_scheme=scheme, viewport={"width": width, "height": 740}, bypass_csp=True
        )
        seen.goto(path.as_uri())
        assert seen.evaluate("document.documentElement.scrollWidth") <= width
        results = Axe().run(seen)
        browser.close()
    assert results.violations_count == 0, results.generate_report()

"""course.toml: what it may say, and the error for everything else."""

import datetime
import re
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest

from autograde.chapters import ROOT, Course
from autograde.course_rules import BadRules, book_address, limits, overlay, rules
from autograde.plan import ClassFolder
from autograde.run import Limits
from autograde.source import TIERS

BERLIN = ZoneInfo("Europe/Berlin")
ALL = """
time_zone = "Europe/Berlin"
tiers = ["core"]
[limits]
cpu = 10
memory = 1.5
[late]
slip_days = 4
cost_per_day = 0.1
cap = 0.5
[late.hard_end]
90 = 2026-10-31
[deadlines]
90 = 2026-10-12T18:00:00
[extensions.ada]
90-example = 3
[extensions."Zoe\u0308"]
90 = 2026-10-20T12:00:00Z
"""


@pytest.fixture
def told(tmp_path):
    def write(text):
        (tmp_path / "course.toml").write_text(text, encoding="utf-8")
        return ClassFolder(tmp_path)

    return write


def at(*parts):
    return datetime.datetime(2026, 10, *parts, tzinfo=BERLIN)


def test_everything_that_can_be_said(told, course):
    found = rules(told(ALL), course)
    assert found.policy.cost == Fraction(1, 10)  # exactly, which the float 0.1 is not
    assert (found.policy.slip_days, found.policy.cap) == (4, Fraction(1, 2))
    assert found.deadlines == {"90-example": at(12, 18)}
    assert found.hard_ends == {"90-example": at(31, 23, 59, 59)}
    assert found.extensions["ada"] == {"90-example": at(15, 18)}
    assert found.dates("Zo\u00eb", "90-example").due == at(20, 14)
    assert found.dates("bob", "90-example").due == at(12, 18)
    assert limits(told(ALL)) == Limits(cpu=10.0, memory=1.5)


def test_without_the_file_there_are_no_rules(tmp_path, course):
    found = rules(ClassFolder(tmp_path), course)
    assert (found.tiers, found.deadlines, found.policy.cost) == (TIERS, {}, 0)
    assert limits(ClassFolder(tmp_path)) == Limits()


def test_only_the_named_tiers_count(told, course, chapter):
    assert rules(told(ALL), course).left_out(chapter) == {"90-row-means-by-hand", "90-why"}
    assert rules(told(""), course).left_out(chapter) == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour = 1", "colour is no key"),
        ("[extensions.çelik]\n90 = 1", 'stands in quotes, as in [extensions."Zoë"]'),
        ("[deadlines]\noverlay = 'own'", "move overlay to the top of the file, above all [tables]"),
        ("late = 3", "[late] is a table"),
        ("[late]\nslipdays = 3", "[late] slipdays is no key"),
        ("[late]\nslip_days = 1.5", "a whole number of 0 or more, not 1.5"),
        ("[late]\nslip_days = true", "a whole number"),
        ("[late]\ncost_per_day = 10", "a number from 0 to 1, not 10"),
        ("[late]\ncap = nan", "a number from 0 to 1"),
        ("[limits]\ncpu = 0", "[limits] cpu"),
        ('[limits]\nmemory = "2 GiB"', "[limits] memory"),
        ('tiers = ["hard"]', "tiers is a list of some of"),
        ('time_zone = "Mars/Olympus"', "time_zone 'Mars/Olympus' is not known"),
        ("time_zone = 1", "time_zone 1 is not known"),
        ("[deadlines]\n77 = 2026-10-12", "there is no chapter '77'"),
        ("[deadlines]\n90 = 2026-10-12\n90-example = 2026-10-12", "names 90-example twice"),
        ('[deadlines]\n90 = "12 October"', "without quotes"),
        ("[extensions.ada]\n90 = 3", "there is no deadline for 90-example"),
        ("[deadlines]\n90 = 2026-10-12\n[extensions.ada]\n90 = 0", "[extensions.ada] 90"),
        ("[deadlines]\n90 = 2026-10-12\n[extensions.ada]\n90 = 2026-10-01", "before the deadline"),
        (
            "[deadlines]\n90 = 2026-10-12\n[late.hard_end]\n90 = 2026-10-11",
            "before the deadline",
        ),
        (
            'time_zone = "Europe/Berlin"\n[deadlines]\n90 = 2026-10-25T02:30:00',
            "the clocks change at 2026-10-25 02:30",
        ),
        (
            'time_zone = "Europe/Berlin"\n[deadlines]\n90 = 2026-03-29T02:30:00',
            "the clocks change at 2026-03-29 02:30",
        ),
        ("time_zone = ", "cannot be read as TOML"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(told, course, text, words):
    folder = told(text)
    with pytest.raises(BadRules) as caught:
        (rules(folder, course), limits(folder))
    assert words in str(caught.value)
    assert "course.toml" in str(caught.value)


def test_the_example_on_the_page_for_teachers_is_understood(told):
    page = (ROOT / "pages" / "grading.md").read_text()
    examples = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    example, second = (one for one in examples if one.startswith(("time_zone", "# class/course")))
    folder = told(example)
    read = rules(folder, Course())
    assert read.dates("ada", "02-attention").due == datetime.datetime(
        2026, 10, 15, 18, tzinfo=BERLIN
    )
    assert read.dates("bob", "02-attention").end == datetime.datetime(
        2026, 10, 31, 23, 59, 59, tzinfo=BERLIN
    )
    assert limits(folder) == Limits(cpu=10, memory=3)
    assert overlay(folder) is None
    own = overlay(told(second + example))
    assert own.resolve() == folder.root.parent.resolve() / "own-tests"


@pytest.mark.parametrize("address", ["https://example.org", "http://10.0.0.2:8000/our%20course/"])
def test_the_book_has_an_address(told, address):
    assert book_address(told(f'book = "{address}"')) == address
    assert book_address(told("")) is None


@pytest.mark.parametrize(
    "address",
    [
        '"javascript:alert(1)"', '"www.example.org"', '"https://"', '"https://example.org/#top"',
        '"https://example.org/?a=b"', '"https://ada:secret@example.org/"', '"https://[::1"',
        '"https://example.org/index.html"', '"https://example.org/a b"', '"https://a/\\u202Eb"',
        '"https://example.org:99999/"', "3",
    ],
)  # fmt: skip
def test_what_no_link_can_be_made_of_is_an_error(told, address):
    with pytest.raises(BadRules, match="book is an address like"):
        book_address(told(f"book = {address}"))

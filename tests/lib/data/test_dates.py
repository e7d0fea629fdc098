"""Dates: written as expected, read in one way only, and the held-out days stay out."""

from datetime import date, timedelta

import pytest

from plainformer.data import dates as module
from plainformer.data.batching import text_pairs
from plainformer.data.dates import FIRST, LAST, STYLES, date_chars, dates, written
from plainformer.seeding import generator

DAY = date(2026, 3, 5)


@pytest.mark.parametrize(
    ("style", "want"),
    [
        ("Chinese, Japanese", "2026年3月5日"),
        ("Czech", "5. března 2026"),
        ("Danish", "5. marts 2026"),
        ("Dutch", "5 maart 2026"),
        ("Dutch, numbers", "5-3-2026"),
        ("English", "5 March 2026"),
        ("English, American", "March 5, 2026"),
        ("English, short", "Mar 5, 2026"),
        ("English, short, day first", "5 Mar 2026"),
        ("Finnish", "5. maaliskuuta 2026"),
        ("French", "5 mars 2026"),
        ("German", "5. März 2026"),
        ("German, numbers", "5.3.2026"),
        ("German, two digits", "05.03.2026"),
        ("Greek", "5 Μαρτίου 2026"),
        ("Hungarian", "2026. március 5."),
        ("Hungarian, numbers", "2026. 03. 05."),
        ("Italian", "5 marzo 2026"),
        ("Japanese, numbers", "2026/03/05"),
        ("Korean", "2026년 3월 5일"),
        ("Polish", "5 marca 2026"),
        ("Portuguese", "5 de março de 2026"),
        ("Russian", "5 марта 2026 г."),  # noqa: RUF001
        ("Spanish", "5 de marzo de 2026"),
        ("Swedish", "5 mars 2026"),
        ("Turkish", "5 Mart 2026"),
        ("United States, numbers", "3/5/2026"),
        ("United States, two digits", "03/05/2026"),
        ("without separators", "20260305"),
    ],
)
def test_by_hand(style, want):
    assert written(DAY, style) == want


def test_every_style_is_in_the_list_above():
    marks = test_by_hand.pytestmark[0].args[1]
    assert {style for style, _ in marks} == set(STYLES)


def twice(days) -> set[str]:
    """Texts that stand for two different days."""
    meant, wrong = {}, set()
    for day in days:
        for style in STYLES:
            text = written(day, style)
            if meant.setdefault(text, day) != day:
                wrong.add(text)
    return wrong


# Two years tell leap years and centuries apart; what differs between others is four digits.
YEARS = [date(year, 1, 1) + timedelta(days=n) for year in (1999, 2000) for n in range(365)]


def test_no_text_stands_for_two_days():
    assert twice(YEARS) == set()


def test_the_croatian_months_would_spoil_it(monkeypatch):
    """Croatian: rujna 9, listopada 10, studenoga 11; Polish: listopada 11."""
    months = (
        "siječnja veljače ožujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenoga "
        "prosinca"
    )
    monkeypatch.setitem(module._MONTHS, "Croatian", months)
    monkeypatch.setitem(STYLES, "Croatian", "{d} {name} {y}")
    assert "5 listopada 1999" in twice(YEARS)


def test_every_language_has_twelve_months_and_no_style_lacks_a_name():
    assert all(len(set(names.split())) == 12 for names in module._MONTHS.values())
    named = [style for style, template in STYLES.items() if "{name}" in template]
    assert all(len(module._months(style)) == 12 for style in named)
    used = {"English, short" if "short" in style else style.split(",")[0] for style in named}
    assert used == set(module._MONTHS)


def test_what_is_drawn_is_right_and_the_generator_alone_decides():
    pairs = dates(200, generator(0))
    assert pairs == dates(200, generator(0)) != dates(200, generator(1))
    for text, iso in pairs:
        day = date.fromisoformat(iso)
        assert FIRST <= day <= LAST
        assert text in {written(day, style) for style in STYLES}


def test_held_out_days_are_every_eleventh_and_never_trained_on():
    trained, held = dates(3000, generator(0)), dates(3000, generator(0), held_out=True)
    number = lambda iso: (date.fromisoformat(iso) - FIRST).days % 11  # noqa: E731
    assert {number(iso) for _, iso in held} == {0}
    assert {number(iso) for _, iso in trained} == set(range(1, 11))


def test_every_style_is_drawn_or_those_alone_that_were_asked_for():
    texts = [text for text, _ in dates(2000, generator(0))]
    signs = {"年", "년", " г.", "kuuta ", " de ", "listopadu", "listopada", "Ağustos", "/"}  # noqa: RUF001
    assert all(any(sign in text for text in texts) for sign in signs)
    for text, iso in dates(20, generator(0), styles=["Dutch, numbers"]):
        assert text == written(date.fromisoformat(iso), "Dutch, numbers")


def test_the_tokenizer_knows_every_character_and_no_other():
    chars = date_chars()
    seen = {c for day in YEARS for style in STYLES for c in written(day, style)}
    assert set(chars.characters) == seen | set("0123456789-")


def test_a_batch_for_a_model():
    chars = date_chars()
    (source, shifted, sees), targets = text_pairs(dates(7, generator(0)), chars)
    assert shifted.shape == targets.shape == (7, 11)
    assert source.shape == sees.shape
    assert targets[:, -1].eq(chars.END).all()


def test_what_cannot_be_drawn_or_written_is_refused():
    with pytest.raises(ValueError, match="b must be at least 1, got 0"):
        dates(0, generator(0))
    with pytest.raises(ValueError, match="styles must be at least 1, got 0"):
        dates(1, generator(0), styles=[])
    with pytest.raises(ValueError, match=r"style must be one of .*'German'.*, got 'Klingon'"):
        written(DAY, "Klingon")
    with pytest.raises(ValueError, match="a year must have four digits, got 999"):
        written(date(999, 1, 1), "German")

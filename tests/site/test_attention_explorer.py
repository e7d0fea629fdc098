"""The attention explorer, on a page of its own."""

import json
from html import escape

import pytest

import build_book

TOKENS = ["the", "law", "and", "its", "use"]
HEADS = [
    {
        "name": "looks back",
        "weights": [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0, 0.0],
            [0.2, 0.4, 0.4, 0.0, 0.0],
            [0.05, 0.8, 0.05, 0.1, 0.0],
            [0.2, 0.2, 0.2, 0.2, 0.2],
        ],
    },
    {"name": "looks at itself", "weights": [[float(t == s) for s in range(5)] for t in range(5)]},
]
FALLBACK = "<table><caption>All weights</caption><tbody><tr><td>0.80</td></tr></tbody></table>"


def element(data: str) -> str:
    return f'<attention-explorer data-json="{escape(data)}">{FALLBACK}</attention-explorer>'


@pytest.fixture
def explorer(page, site):
    """Opens a page with one explorer and returns its frame."""

    def show(data: dict | str = "", **begin):
        data = data or {"tokens": TOKENS, "heads": HEADS, "caption": "Two heads", **begin}
        text = data if isinstance(data, str) else json.dumps(data)
        html = (
            '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
            "<title>Test</title>"
            '<link rel="stylesheet" href="/_static/course.css">'
            '<script src="/_static/attention-explorer.js"></script></head>'
            f'<body><main class="bd-article"><h1>Test</h1>{element(text)}</main></body></html>'
        )
        address = f"{site}/explorer-test.html"
        page.route(address, lambda r: r.fulfill(body=html, content_type="text/html"))
        page.goto(address)
        return page.locator("attention-explorer")

    return show


def shares(explorer) -> list[str]:
    return explorer.locator(".ae-share").all_inner_texts()


def chosen(explorer) -> str:
    return explorer.locator("[role=radio][aria-checked=true]").inner_text()


def test_it_begins_with_the_most_decided_look_at_another_token(explorer):
    shown = explorer()
    assert chosen(shown) == "its"
    assert shares(shown) == ["5 %", "80 %", "5 %", "10 %", "0 %"]


def test_the_page_may_say_where_to_begin(explorer):
    shown = explorer(head=1, query=0)
    assert chosen(shown) == "the"
    assert shares(shown)[0] == "100 %"
    assert shown.locator("select").evaluate("(s) => s.selectedOptions[0].text") == "looks at itself"


def test_a_tap_chooses_a_query(explorer):
    shown = explorer()
    shown.get_by_role("radio", name="and").click()
    assert chosen(shown) == "and"
    assert shares(shown) == ["20 %", "40 %", "40 %", "0 %", "0 %"]


def test_arrow_keys_move_and_stop_at_the_ends(explorer, page):
    shown = explorer()
    shown.get_by_role("radio", name="its").focus()
    for key, token in (
        ("ArrowDown", "use"),
        ("ArrowDown", "use"),
        ("ArrowUp", "its"),
        ("Home", "the"),
        ("ArrowLeft", "the"),
        ("End", "use"),
    ):
        page.keyboard.press(key)
        assert chosen(shown) == token
        assert page.evaluate("document.activeElement.textContent") == token


def test_one_tab_stop_leads_into_the_list_of_queries(explorer):
    shown = explorer()
    stops = shown.locator("[role=radio]").evaluate_all("all => all.map((b) => b.tabIndex)")
    assert sorted(stops) == [-1, -1, -1, -1, 0]


def test_pointing_shows_without_choosing(explorer, page):
    shown = explorer()
    shown.get_by_role("radio", name="the").hover()
    assert shares(shown)[0] == "100 %"
    assert chosen(shown) == "its"
    page.mouse.move(0, 0)
    assert shares(shown)[1] == "80 %"


def test_a_choice_is_read_aloud_after_a_rest_and_pointing_is_not(explorer, page):
    shown = explorer()
    spoken = shown.locator("[aria-live=polite]")
    shown.get_by_role("radio", name="the").hover()
    page.wait_for_timeout(700)
    assert spoken.inner_text() == ""
    shown.get_by_role("radio", name="law").click()
    assert spoken.inner_text() == ""
    page.wait_for_timeout(700)
    assert "“law” looks most at “the” (50 %), then “law” (50 %)" in spoken.inner_text()


def test_the_entropy_of_an_even_row_is_the_logarithm_of_its_length(explorer):
    shown = explorer()
    shown.get_by_role("radio", name="use").click()
    assert "Entropy 1.61 of at most 1.61 nats" in shown.locator(".ae-said").inner_text()


def test_another_head_can_be_picked(explorer):
    shown = explorer()
    shown.locator("select").select_option(label="looks at itself")
    assert shares(shown) == ["0 %", "0 %", "0 %", "100 %", "0 %"]
    assert chosen(shown) == "its"


def test_one_head_needs_no_picker(explorer):
    shown = explorer({"tokens": TOKENS, "weights": HEADS[0]["weights"], "caption": ""})
    assert shares(shown)[1] == "80 %"
    assert shown.locator("select").count() == 0


def test_a_token_that_sees_nothing_is_said_to(explorer):
    shown = explorer({"tokens": ["a", "b"], "weights": [[0, 0], [0.5, 0.5]], "caption": ""})
    shown.get_by_role("radio", name="a").click()
    assert shown.locator(".ae-said").inner_text() == "“a” sees nothing."


def test_tokens_are_text_and_never_markup(explorer):
    sly = '<img src=x onerror="window.bad = 1">'
    shown = explorer({"tokens": [sly, "b"], "weights": [[1, 0], [0, 1]], "caption": sly})
    assert shown.locator("img").count() == 0
    assert shown.get_by_role("radio").first.inner_text() == sly


def test_what_cannot_be_read_leaves_the_fallback(explorer):
    shown = explorer("{broken")
    assert shown.locator("table").is_visible()
    assert shown.locator(".ae").count() == 0


def test_the_fallback_stays_within_reach_as_a_table(explorer):
    shown = explorer()
    assert not shown.locator("table").is_visible()
    shown.get_by_text("As a table").click()
    assert shown.locator("table").is_visible()


def test_lines_meet_their_tokens(explorer):
    """The drawing and the two columns have one scale: the strongest line ends at its key."""
    shown = explorer()
    line = (
        shown.locator(".ae-links path")
        .nth(1)
        .evaluate(
            "(path) => [path.getBoundingClientRect().bottom, path.getBoundingClientRect().top]"
        )
    )
    query = shown.get_by_role("radio", name="its").bounding_box()
    key = shown.locator(".ae-key").nth(1).bounding_box()
    middles = [box["y"] + box["height"] / 2 for box in (query, key)]
    assert line == pytest.approx(middles, abs=1)


def test_nothing_moves_for_people_who_asked_for_rest(explorer, page):
    shown = explorer()
    bar = shown.locator(".ae-bar").first
    assert bar.evaluate("(e) => getComputedStyle(e).transitionDuration") == "0s"
    page.emulate_media(reduced_motion="no-preference")
    assert bar.evaluate("(e) => getComputedStyle(e).transitionDuration") != "0s"


def test_it_prints_what_is_chosen_without_its_controls(explorer, page):
    shown = explorer()
    page.emulate_media(media="print")
    assert not shown.locator("select").is_visible()
    assert shown.locator(".ae-said").is_visible()
    assert shown.locator(".ae-links").is_visible()


def test_twenty_long_tokens_fit_a_phone(explorer, page):
    tokens = [f"understanding{i}" for i in range(20)]
    rows = [[0.05] * 20 for _ in range(20)]
    page.set_viewport_size({"width": 360, "height": 740})
    shown = explorer({"tokens": tokens, "weights": rows, "caption": "Twenty"})
    assert shown.locator(".ae").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_script_is_small():
    script = build_book.ROOT / "_static" / "attention-explorer.js"
    assert script.stat().st_size <= 8192

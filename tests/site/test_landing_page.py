"""The first page: its numbers are right, its syllabus is complete."""

import json
import re

import pytest
import torch

import build_book
from site_copy import chapter_title

INDEX = build_book.ROOT / "index.md"


def matrices() -> dict[str, list[list[str]]]:
    """Every matrix of the page by its letter, as printed."""
    lines = re.findall(
        r"^(\w+)[^|\n]*\|[^|\n]+\|([-\d.; ]+)", INDEX.read_text("utf-8"), re.MULTILINE
    )
    return {name: [row.split() for row in rows.split(";")] for name, rows in lines}


def as_tensor(cells: list[list[str]]) -> torch.Tensor:
    return torch.tensor([[float(cell) for cell in row] for row in cells], dtype=torch.float64)


def test_the_example_is_the_one_of_the_course():
    given = matrices()
    assert given["X"] == [["0", "1"], ["2", "0"]]
    assert given["W_Q"] == [["1", "1"], ["1", "2"]]
    assert given["W_K"] == [["0", "1"], ["1", "0"]]
    assert given["W_V"] == [["2", "0"], ["0", "1"]]


def computed(scale: float) -> dict[str, torch.Tensor]:
    x, w_q, w_k, w_v = (as_tensor(matrices()[name]) for name in ("X", "W_Q", "W_K", "W_V"))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.mT / scale
    exponentials = scores.exp()
    weights = exponentials / exponentials.sum(dim=1, keepdim=True)
    return {"Q": q, "K": k, "V": v, "S": scores, "A": weights, "O": weights @ v}


@pytest.mark.parametrize("name", ["Q", "K", "V", "S", "A", "O"])
def test_every_printed_number_is_what_one_computes(name):
    printed = matrices()[name]
    for row, right in zip(printed, computed(2**0.5)[name].tolist(), strict=True):
        for cell, number in zip(row, right, strict=True):
            decimals = len(cell.partition(".")[2])
            assert cell == f"{number:.{decimals}f}"


def test_the_numbers_in_the_text_are_right_too():
    text = INDEX.read_text("utf-8").partition("Read the first row")[2].partition("##")[0]
    scaled, unscaled = computed(2**0.5), computed(1.0)
    assert f"weight {scaled['A'][0, 0]:.6f}" in text
    assert f"{scaled['A'][0, 1]:.6f}, so" in text
    assert f"of $O$ is {unscaled['O'][0, 0]:.6f}" in text


def test_the_corrections_quote_the_numbers_of_the_cell_they_link_to():
    page = (build_book.ROOT / "pages" / "corrections.md").read_text("utf-8")
    first, second = computed(1.0)["A"].sum(dim=0).tolist()
    assert f"sum to {first:.6f} and {second:.6f}" in page
    assert f"number of $O$ is {computed(1.0)['O'][0, 0]:.6f}" in page
    chapter = json.loads((build_book.ROOT / "chapters" / "02-attention.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in chapter["cells"]]
    assert any(f"{first:.6f}, {second:.6f}" in cell for cell in cells)


def test_the_page_shows_the_matrices_and_fills_weights(page, site):
    page.goto(f"{site}/index.html")
    assert page.locator(".matrix").count() == 10
    cells = page.locator(".matrix.weights td")
    assert cells.all_inner_texts() == [cell for row in matrices()["A"] for cell in row]
    shades = cells.evaluate_all("all => all.map((td) => td.style.getPropertyValue('--w'))")
    assert shades == ["11%", "89%", "20%", "80%"]


def cards() -> list[tuple[str, str]]:
    return re.findall(r"^(\d\d-[\w-]+) \| ([^|]+) \| .+$", INDEX.read_text("utf-8"), re.MULTILINE)


def test_the_syllabus_counts_from_0_to_20():
    assert [int(slug[:2]) for slug, _ in cards()] == list(range(21))


def test_written_chapters_are_announced_under_their_own_titles():
    titles = {slug: title.strip() for slug, title in cards()}
    for slug in build_book.chapter_slugs(build_book.ROOT):
        path = build_book.ROOT / "chapters" / f"{slug}.ipynb"
        assert titles[slug] == chapter_title(json.loads(path.read_text("utf-8")))


def test_written_chapters_are_links_and_the_others_are_not(page, site):
    page.goto(f"{site}/index.html")
    written = build_book.chapter_slugs(build_book.ROOT)
    links = page.locator(".chapter-card.written a").evaluate_all("all => all.map((a) => a.href)")
    assert sorted(links) == sorted(f"{site}/chapters/{slug}.html" for slug in written)
    assert page.locator(".chapter-card").count() == 21
    assert page.locator(".chapter-card.unwritten a").count() == 0


def test_there_are_three_doors(page, site):
    page.goto(f"{site}/index.html")
    doors = page.locator(".doors .sd-card")
    assert [door.locator(".sd-card-title").inner_text() for door in doors.all()] == [
        "Read",
        "Practise",
        "Grade",
    ]
    for door in doors.all():
        assert door.locator("a").get_attribute("href").startswith("pages/")

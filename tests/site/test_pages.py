"""Every page of the built site, in a browser that reaches nothing else."""

import re
import urllib.request

import pytest

import build_book


def problems(visits, found) -> str:
    """One line a page that has something to complain about."""
    return "\n".join(f"{v.page}: {what}" for v in visits if (what := found(v)))


def test_the_pages_are_those_of_the_table_of_contents(book):
    listed = build_book.toc_files(build_book.read_toc(book.root))
    assert sorted(listed) == build_book.built_pages(book.html)


def test_all_pages_were_visited(book, visits):
    listed = {f"{name}.html" for name in build_book.toc_files(build_book.read_toc(book.root))}
    assert listed | {"search.html"} <= {visit.page for visit in visits}


def test_no_page_asks_another_host(visits):
    assert not problems(visits, lambda visit: visit.foreign)


def test_no_address_of_another_host_is_loaded_by_any_file(book):
    """Also what only a click would load: scripts, styles and frames in the markup."""
    loads = re.compile(r"<(?:script|link|img|iframe|object)[^>]*(?:src|href|data)=\"(?:https?:)?//")
    found = {
        path.name: loads.findall(path.read_text(encoding="utf-8"))
        for path in book.html.rglob("*.html")
    }
    assert not {name: hits for name, hits in found.items() if hits}
    scripts = [path.read_text(encoding="utf-8") for path in book.html.rglob("_static/*.js")]
    assert scripts
    assert not [s[:80] for s in scripts if re.search(r"unpkg\.com|cdnjs\.|jsdelivr", s)]


def test_no_page_has_an_error_in_its_console(visits):
    assert not problems(visits, lambda visit: visit.console)


def test_nothing_is_missing(visits):
    assert not problems(visits, lambda visit: visit.broken)


def test_every_formula_is_typeset(visits):
    assert not problems(visits, lambda visit: visit.shown["raw"])
    assert not problems(visits, lambda visit: visit.shown["errors"])
    assert any(visit.shown["typeset"] for visit in visits)


def test_the_pictures_of_the_real_encoder_are_on_the_page(book):
    """The chapter does without them where the encoder is missing; the site must not."""
    page = (book.html / "chapters" / "02-attention.html").read_text(encoding="utf-8")
    assert "<attention-explorer" in page
    assert "its -&gt; law 0.794" in page


def test_every_picture_is_there_and_described(visits):
    def undescribed(visit):
        return [
            src
            for src, alt, loaded, _ in visit.shown["pictures"]
            # MyST-NB falls back to the file's name, which says nothing
            if not (loaded and alt and len(alt) > 9 and not re.search(r"\.(png|svg)$", alt))
        ]

    assert not problems(visits, undescribed)


def test_every_picture_opens_when_touched(visits):
    """On a phone it is smaller than one can read."""

    def closed(visit):
        return [src for src, _, _, link in visit.shown["pictures"] if link != src]

    assert not problems(visits, closed)
    assert sum(len(visit.shown["pictures"]) for visit in visits) > 5


def test_no_output_and_no_formula_is_cut_on_a_desk(visits):
    assert not problems(visits, lambda visit: visit.shown["cut"])


def test_every_explorer_came_alive(visits):
    def dead(visit):
        return visit.shown["explorers"] - visit.shown["alive"]

    assert not problems(visits, dead)


@pytest.mark.parametrize("mode", ["light", "dark", "phone"])
def test_axe_finds_nothing(visits, mode):
    assert not problems(visits, lambda visit: visit.axe[mode])


def test_no_page_scrolls_sideways_on_a_phone(visits):
    assert not problems(visits, lambda visit: visit.too_wide)


def test_what_a_phone_cannot_show_at_once_scrolls_and_says_so(visits):
    def stuck(visit):
        return [what for what, reachable in visit.scrolled if not reachable]

    assert not problems(visits, stuck)
    assert any(visit.scrolled for visit in visits)


def test_names_in_tables_stay_in_one_piece_on_a_phone(visits):
    assert not problems(visits, lambda visit: visit.broken_names)


@pytest.mark.parametrize("chosen", ["dark", "light"])
def test_the_site_is_as_dark_as_the_system_until_a_reader_chooses(browser, site, chosen):
    other = {"dark": "light", "light": "dark"}[chosen]
    context = browser.new_context(color_scheme=chosen)
    page = context.new_page()
    errors = []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    shown = "document.documentElement.dataset.theme"
    page.goto(f"{site}/index.html")
    assert page.evaluate(shown) == chosen
    page.evaluate("(mode) => localStorage.setItem('mode', mode)", other)
    page.reload()
    assert page.evaluate(shown) == other
    assert not errors
    context.close()


def test_solutions_and_hints_are_folded(visits):
    assert not problems(visits, lambda visit: visit.shown["open"])


def test_every_exercise_has_its_solution(book, visits):
    from autograde import source

    shown = {visit.page: visit.shown["solutions"] for visit in visits}
    for slug in build_book.chapter_slugs(book.root):
        chapter = source.load(slug)
        expected = {*chapter.exercises, *(cell.id for cell in chapter.written)}
        assert set(shown[f"chapters/{slug}.html"]) == expected
        assert len(shown[f"chapters/{slug}.html"]) == len(expected)


def test_a_click_opens_a_solution(book, page, site):
    for slug in build_book.chapter_slugs(book.root):
        page.goto(f"{site}/chapters/{slug}.html")
        solution = page.locator("details.solution").first
        inside = solution.locator("pre, .model-answer").first
        assert not inside.is_visible()
        solution.locator("summary").click()
        assert inside.is_visible()
        solution.locator("summary").click()
        assert not inside.is_visible()


def test_the_download_button_serves_the_notebook_of_the_students(book, page, site):
    for slug in build_book.chapter_slugs(book.root):
        page.goto(f"{site}/chapters/{slug}.html")
        address = page.locator(".btn-download-source-button").get_attribute("href")
        with urllib.request.urlopen(f"{site}/chapters/{address}") as answer:
            served = answer.read()
        assert served == (book.root / "chapters" / f"{slug}.ipynb").read_bytes()


def test_search_finds_a_chapter(page, site):
    page.goto(f"{site}/search.html?q=softmax")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    links = page.locator("#search-results li a").evaluate_all("all => all.map((a) => a.href)")
    assert any("/chapters/" in link for link in links)


def test_what_is_searched_for_stands_beside_the_magnifying_glass(page, site):
    page.goto(f"{site}/search.html?q=softmax")
    glass = page.locator("main .bd-search i").bounding_box()
    start = page.locator("main .bd-search input").evaluate(
        "(e) => e.getBoundingClientRect().left + parseFloat(getComputedStyle(e).paddingLeft)"
    )
    assert glass["x"] + glass["width"] <= start


def test_long_names_fit_the_contents_beside_the_page(page, site):
    page.goto(f"{site}/pages/library.html")
    names = page.locator(".bd-sidebar-secondary code")
    assert names.count() > 20
    shown = "all => all.map((e) => e.getBoundingClientRect().right)"
    assert max(names.evaluate_all(shown)) <= 1280
    page.locator("dl.py.class").first.evaluate("(e) => e.scrollIntoView()")
    nested = page.locator(".bd-sidebar-secondary ul ul ul code:visible")
    nested.first.wait_for()  # the members of the class that is read
    assert max(names.evaluate_all(shown)) <= 1280


def test_every_preprint_is_a_link(page, site):
    page.goto(f"{site}/pages/bibliography.html")
    text = page.locator("article").inner_text()
    links = page.locator("article a[href^='https://arxiv.org/abs/']").all_inner_texts()
    assert links == re.findall(r"arXiv:[\d.]+\d", text)
    assert len(links) > 10


def test_the_icons_are_drawn_without_the_script_of_their_makers(page, site):
    """The theme brings 1.5 MB of icon code; its fonts alone must draw the buttons."""
    page.goto(f"{site}/index.html")
    page.evaluate("() => document.fonts.ready.then(() => null)")
    icons = page.locator(".article-header-buttons i:visible").evaluate_all(
        """all => all.map((icon) => {
            const style = getComputedStyle(icon, "::before");
            return [style.content, document.fonts.check(`900 16px ${style.fontFamily}`),
                    icon.getBoundingClientRect().width];
        })"""
    )
    assert icons
    for content, loaded, width in icons:
        assert content not in ("none", '""')
        assert loaded
        assert width > 5


def test_it_all_works_from_a_folder(browser, book):
    """Opened as a file: formulas, the explorer, the search."""
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    for slug in build_book.chapter_slugs(book.root):
        page.goto((book.html / "chapters" / f"{slug}.html").as_uri(), wait_until="load")
        page.evaluate("() => window.MathJax?.startup?.promise")
        assert not page.locator("mjx-merror").count()
        assert page.locator(".math").count() == page.locator(".math:has(mjx-container)").count()
        explorers = page.locator("attention-explorer")
        assert explorers.count() == page.locator("attention-explorer .ae").count()
    page.goto((book.html / "search.html").as_uri() + "?q=attention", wait_until="load")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    assert page.locator("#search-results li a").count() > 1
    context.close()


def test_without_javascript_the_words_and_tables_are_there(browser, book, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/index.html")
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert page.locator(".matrix table").first.is_visible()
    for slug in build_book.chapter_slugs(book.root):
        page.goto(f"{site}/chapters/{slug}.html")
        assert page.locator("article h1").is_visible()
        for explorer in page.locator("attention-explorer").all():
            assert explorer.locator("table").first.is_visible()
    context.close()


def test_page_weights_are_written_down(book, visits):
    lines = (book.build / "page-weights.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(visits)
    assert all(re.match(r" *\d+\.\d\d MB +\d+ requests", line) for line in lines)

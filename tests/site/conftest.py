"""Build the site if it is stale, serve it, and visit each of its pages once.

A visit collects everything that the tests ask about: pages are slow, assertions are cheap.
"""

import functools
import http.server
import threading
from dataclasses import dataclass, field
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import sync_playwright

import build_book
from autograde.doctor import chromium_path

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # no network but our own server
)
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}

IN_PAGE = """() => {
  const texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);
  const resources = performance.getEntriesByType("resource");
  const page = performance.getEntriesByType("navigation")[0];
  return {
    typeset: [...document.querySelectorAll(".math")].filter((m) =>
      m.querySelector("mjx-container mjx-math > *")).length,
    raw: [...document.querySelectorAll(".math")].filter((m) => !m.querySelector("mjx-container"))
      .map((m) => m.textContent),
    errors: texts("mjx-merror"),
    pictures: [...document.querySelectorAll("article img")].map((i) => [
      i.getAttribute("src"), i.getAttribute("alt"), i.complete && i.naturalWidth > 0,
      i.closest("a")?.getAttribute("href")]),
    cut: [...document.querySelectorAll(
      ".cell_output pre, .highlight-text pre, mjx-container[display]")]
      .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent.slice(0, 60)),
    open: [...document.querySelectorAll("details.solution[open], details.hint[open]")].length,
    solutions: [...document.querySelectorAll("details.solution")].map((d) => d.dataset.exercise),
    explorers: document.querySelectorAll("attention-explorer").length,
    alive: document.querySelectorAll("attention-explorer .ae").length,
    requests: resources.length + 1,
    bytes: resources.reduce((sum, r) => sum + r.decodedBodySize, page.decodedBodySize),
  };
}"""

WIDEST = """() => {
  const wide = document.documentElement.scrollWidth;
  if (wide <= innerWidth) return null;
  const clipped = (e) => e && e !== document.body
    && (getComputedStyle(e).overflowX !== "visible" || clipped(e.parentElement));
  const guilty = [...document.querySelectorAll("article *")].filter((e) =>
    e.getBoundingClientRect().right > innerWidth + 1 && !clipped(e.parentElement));
  return `${wide} px: ` + guilty.slice(0, 3).map((e) =>
    `${e.tagName.toLowerCase()}.${e.className}`).join(", ");
}"""

# What a phone cannot show at once: `[what, whether one can get at its end]`.
SCROLLED = """() => [...document.querySelectorAll(
    'article pre, .pst-scrollable-table-container, mjx-container[display="true"]')]
  .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
  .map((e) => {
    e.scrollLeft = e.scrollWidth;
    const end = e.scrollLeft + e.clientWidth >= e.scrollWidth - 1;
    const style = getComputedStyle(e);
    const cue = style.backgroundImage.includes("gradient");
    const reachable = e.tabIndex === 0 && style.overflowX === "auto" && end && cue;
    return [e.textContent.slice(0, 40), reachable];
  })"""

# Names in tables that are written on more than one line.
BROKEN_NAMES = """() => [...document.querySelectorAll("article td code")]
  .filter((e) => e.getClientRects().length > 1).map((e) => e.textContent)"""

# A chapter has thousands of coloured words, and axe measures the contrast of each. One of every
# class in every kind of cell is enough: the others look the same.
ONE_OF_EACH = """() => {
  const seen = new Set();
  for (const word of document.querySelectorAll("pre span:not(:has(*))")) {
    const frame = word.closest("div.cell, details, div.highlight");
    const printed = word.closest(".cell_output") && "printed";
    const kind = `${word.className} in ${frame?.className} ${printed}`;
    if (seen.has(kind)) word.replaceWith(word.textContent);
    seen.add(kind);
  }
}"""

FOLD = "(open) => document.querySelectorAll('details').forEach((d) => (d.open = open))"

AXE_RUN = """async (rule) => {
  await Promise.all(document.getAnimations().map((a) => a.finished));
  const only = rule ? {runOnly: [rule]} : {};
  const found = await axe.run(document, {resultTypes: ["violations"], preload: false, ...only});
  return found.violations.map((v) => `${v.impact} ${v.id}: ` + v.nodes.slice(0, 3).map((n) =>
    n.target.join(" ") + (n.any[0] ? ` (${n.any[0].message})` : "")).join("; "));
}"""


@dataclass
class Visit:
    """What one page did and showed."""

    page: str
    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    shown: dict = field(default_factory=dict)
    axe: dict[str, list[str]] = field(default_factory=dict)
    too_wide: list[str] = field(default_factory=list)
    scrolled: list[tuple[str, bool]] = field(default_factory=list)
    broken_names: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def book() -> build_book.Book:
    """The site, built from the checkout as it stands, without a warning."""
    book = build_book.Book()
    build_book.build(book, strict=True)
    return book


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass


@pytest.fixture(scope="session")
def site(book) -> str:
    """Where the built site is served, without a slash at the end."""
    handler = functools.partial(Handler, directory=str(book.html))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def browser():
    path = chromium_path()
    assert path, "the page tests need Chromium: install it, or set CHROMIUM=/path/to/chrome"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def page(browser, site):
    """A desktop page."""
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def visits(browser, site, book) -> list[Visit]:
    """Every HTML page of the site, seen on a desk and on a phone, in light and dark."""
    pages = sorted(path.relative_to(book.html).as_posix() for path in book.html.rglob("*.html"))
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    seen = [see(context, site, page) for page in pages]
    context.close()
    lines = [
        f"{visit.shown['bytes'] / 1e6:6.2f} MB  {visit.shown['requests']:3d} requests  {visit.page}"
        for visit in sorted(seen, key=lambda visit: -visit.shown["bytes"])
    ]
    (book.build / "page-weights.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return seen


def see(context, site: str, name: str) -> Visit:
    visit = Visit(name)
    page = context.new_page()
    page.on("console", lambda m: visit.console.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: visit.console.append(str(error)))
    page.on("request", lambda r: None if is_ours(r.url, site) else visit.foreign.append(r.url))
    page.on("requestfailed", lambda r: visit.broken.append(r.url))
    page.on(
        "response", lambda r: visit.broken.append(f"{r.status} {r.url}") if r.status > 399 else None
    )
    page.goto(f"{site}/{name}", wait_until="load")
    page.evaluate("() => window.MathJax?.startup?.promise")
    page.evaluate("() => document.fonts.ready.then(() => null)")
    visit.shown = page.evaluate(IN_PAGE)
    page.set_viewport_size(PHONE)
    for opened in (False, True):  # what is folded is part of the page, too
        page.evaluate(
            "(o) => document.querySelectorAll('details').forEach((d) => (d.open = o))", opened
        )
        if wide := page.evaluate(WIDEST):
            visit.too_wide.append(wide)
    visit.scrolled = page.evaluate(SCROLLED)
    if not all(reachable for _, reachable in visit.scrolled):
        page.wait_for_timeout(500)  # the theme's script answers a new width after 0.3 s
        visit.scrolled = page.evaluate(SCROLLED)
    visit.broken_names = page.evaluate(BROKEN_NAMES)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    visit.axe["phone"] = page.evaluate(AXE_RUN, "scrollable-region-focusable")
    page.set_viewport_size(DESKTOP)
    page.evaluate(ONE_OF_EACH)
    for mode in ("light", "dark"):
        page.evaluate("(mode) => (document.documentElement.dataset.theme = mode)", mode)
        visit.axe[mode] = page.evaluate(AXE_RUN)
    page.close()
    return visit


def is_ours(address: str, site: str) -> bool:
    """Whether a request stays on the site; `data:` and `blob:` go nowhere."""
    return address.startswith((f"{site}/", "data:", "blob:"))


def pytest_terminal_summary(terminalreporter) -> None:
    """Say what pages weigh; the whole list stays in _build/page-weights.txt."""
    weights = build_book.Book().build / "page-weights.txt"
    if weights.is_file():
        lines = weights.read_text(encoding="utf-8").splitlines()
        terminalreporter.section("page weights, the heaviest three")
        for line in lines[:3]:
            terminalreporter.write_line(line)

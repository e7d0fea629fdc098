"""Build the site: `python _ext/build_book.py [--strict] [--class]`.

1. compose `_build/book/`: pages, and of each chapter a copy with exercise headers;
2. run the notebooks (see `run_notebooks.py`), or take their outputs from the cache;
3. `jupyter-book build`, always from scratch: an incremental build keeps an old stylesheet;
4. look at the result, then move it to `_build/html/` in one step.

When nothing changed since the last build without warnings, it stops before step 1.
Warnings are printed; with --strict they fail the build. A cell that fails is always fatal.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from filelock import FileLock

from run_notebooks import digest, execution_cache, plain, run_all
from site_copy import StaleNotebook, chapter_title, site_copy

ROOT = Path(__file__).resolve().parent.parent
FINISHED = ".finished"  # what course_site writes when it is through
COPIED = ("index.md", "pages", "_static", "references.bib")


class BookError(Exception):
    """The book cannot be built; the message says what to do."""


@dataclass(frozen=True)
class Book:
    """Where things are. The class's site, without solutions, has folders of its own."""

    root: Path = ROOT
    solutions: bool = True

    @property
    def build(self) -> Path:
        return self.root / "_build"

    @property
    def sources(self) -> Path:
        return self.build / ("book" if self.solutions else "book-class")

    @property
    def html(self) -> Path:
        return self.build / ("html" if self.solutions else "html-class")

    @property
    def stamp(self) -> Path:
        return self.build / f"{self.html.name}.stamp"

    @property
    def log(self) -> Path:
        return self.build / f"{self.html.name}.log"


def toc_files(toc: dict) -> list[str]:
    """Every page that the table of contents names, in order: `["index", "pages/setup", ...]`."""
    parts = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    return [toc["root"], *parts]


def read_toc(root: Path) -> dict:
    return yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))


def chapter_slugs(root: Path) -> list[str]:
    """The chapters of the table of contents. Every source is listed, and every entry is built."""
    slugs = [Path(f).name for f in toc_files(read_toc(root)) if f.startswith("chapters/")]
    if unlisted := sorted({p.stem for p in (root / "solutions").glob("*.md")} - set(slugs)):
        raise BookError(f"not in _toc.yml: solutions/{unlisted[0]}.md; add chapters/{unlisted[0]}")
    for slug in slugs:
        if not (root / "solutions" / f"{slug}.md").is_file():
            raise BookError(f"_toc.yml lists chapters/{slug}, but solutions/{slug}.md is missing")
        if not (root / "chapters" / f"{slug}.ipynb").is_file():
            raise BookError(f"chapters/{slug}.ipynb is missing; python -m autograde release {slug}")
    return slugs


def input_hash(book: Book) -> str:
    """One hash over everything that the site is made of."""
    root = book.root
    files = [root / name for name in ("_config.yml", "_toc.yml", "CHANGELOG.md")]
    files += [root / "requirements.lock", root / "pyproject.toml"]
    for name in ("source", "chapters", "build", "plain_markdown"):  # they make texts of the site
        files.append(root / "autograde" / f"{name}.py")
    for slug in chapter_slugs(root):
        files += [root / "chapters" / f"{slug}.ipynb", root / "solutions" / f"{slug}.md"]
    for name in (*COPIED, "_ext", "lib"):
        path = root / name
        found = path.rglob("*") if path.is_dir() else [path]
        files += [p for p in found if not p.is_dir() and p.suffix != ".pyc"]
    files = [path for path in files if "egg-info" not in str(path)]
    return digest(files, root, platform.python_version(), f"solutions={book.solutions}")


def is_fresh(book: Book) -> bool:
    """Whether the last build was clean and nothing has changed since."""
    index = book.html / "index.html"
    if not (book.stamp.is_file() and index.is_file()):
        return False
    return book.stamp.read_text(encoding="utf-8") == input_hash(book)


def compose(book: Book, cache: Path) -> list[Path]:
    """Write the sources of the site; return its notebooks."""
    shutil.rmtree(book.sources, ignore_errors=True)
    (book.sources / "chapters").mkdir(parents=True)
    for name in COPIED:
        source = book.root / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, book.sources / name)
    changes = book.root / "CHANGELOG.md"
    text = changes.read_text("utf-8") if changes.is_file() else "# Changelog\n\nNothing yet.\n"
    (book.sources / "CHANGELOG.md").write_text(text, encoding="utf-8")
    notebooks, titles = [], {}
    for slug in chapter_slugs(book.root):
        notebook = json.loads((book.root / "chapters" / f"{slug}.ipynb").read_text("utf-8"))
        try:
            page = site_copy(notebook, source_texts(slug, book.root))
        except StaleNotebook as stale:
            raise BookError(
                f"chapters/{slug}.ipynb is older than its source ({stale}); "
                f"python -m autograde release {slug}"
            ) from stale
        titles[f"chapters/{slug}"] = f"{int(slug.split('-')[0])} · {chapter_title(notebook)}"
        path = book.sources / "chapters" / f"{slug}.ipynb"
        path.write_text(json.dumps(page, indent=1), encoding="utf-8")
        notebooks.append(path)
    config = site_config(book, cache)
    toc = numbered_toc(read_toc(book.root), titles)
    for name, content in (("_config.yml", config), ("_toc.yml", toc)):
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        (book.sources / name).write_text(text, encoding="utf-8")
    return notebooks


def source_texts(slug: str, root: Path) -> dict[str, str]:
    """The Markdown of a chapter's source, by cell id."""
    sys.path.insert(0, str(ROOT))  # this file is run as a script, which knows only _ext
    from autograde.build import site_texts
    from autograde.chapters import Course
    from autograde.source import load

    return site_texts(load(slug, Course(root)))


def site_config(book: Book, cache: Path) -> dict:
    """`_config.yml`, completed by the paths of this machine and the choice of the caller."""
    config = yaml.safe_load((book.root / "_config.yml").read_text(encoding="utf-8"))
    config["execute"]["cache"] = str(cache)
    ours = config["sphinx"]["config"]
    ours["course_root"] = str(book.root)
    ours["solutions"] = bool(ours["solutions"]) and book.solutions
    return config


def numbered_toc(toc: dict, titles: dict[str, str]) -> dict:
    """The table of contents with a chapter's own number in front of its title."""
    for part in toc["parts"]:
        for entry in part["chapters"]:
            if entry["file"] in titles:
                entry["title"] = titles[entry["file"]]
    return toc


def run_sphinx(book: Book, target: Path) -> list[str]:
    """Run `jupyter-book build` with its output under `target`; return the warnings."""
    code = "from jupyter_book.cli.main import main; main()"
    arguments = ["build", str(book.sources), "--path-output", str(target), "-q"]
    paths = [book.root / "_ext", book.root, book.root / "lib"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONWARNINGS": "ignore",  # other people's deprecations; our own are the tests' business
        "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(book.build / ".matplotlib")),
    }
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "-W", "-n", "--keep-going"],
        env=environment,
        cwd=book.root,
        capture_output=True,
        text=True,
    )
    output = plain(done.stdout + done.stderr)
    book.log.write_text(output, encoding="utf-8")
    finished = target / "_build" / "html" / FINISHED
    if not finished.is_file():
        raise BookError("jupyter-book failed:\n" + "\n".join(output.splitlines()[-40:]))
    finished.unlink()
    warnings = [line for line in output.splitlines() if re.search("WARNING|ERROR|CRITICAL", line)]
    if done.returncode and not warnings:
        warnings = [f"jupyter-book ended with status {done.returncode}"]
    return [line.replace(str(book.sources) + os.sep, "") for line in warnings]


def built_pages(html: Path) -> list[str]:
    """The pages of a built site that somebody wrote, named as in the table of contents."""
    made = {"search", "genindex", "py-modindex", "404"}
    pages = [p.relative_to(html).with_suffix("").as_posix() for p in html.rglob("*.html")]
    return sorted(p for p in pages if p not in made and not p.startswith(("_", ".")))


def check_site(html: Path, files: list[str]) -> None:
    """A build can end well and still lack pages: count them."""
    if missing := sorted(set(files) - set(built_pages(html))):
        raise BookError(f"these pages of _toc.yml were not built: {', '.join(missing)}")
    if extra := sorted(set(built_pages(html)) - set(files)):
        raise BookError(f"these pages are built, but not in _toc.yml: {', '.join(extra)}")


def say(text: str) -> None:
    print(text, flush=True)  # at once, also into a pipe


def build(book: Book, *, strict: bool = False, report=say) -> bool:
    """Build unless nothing changed. Returns whether anything was built; raises BookError."""
    book.build.mkdir(exist_ok=True)
    with FileLock(book.build / "book.lock"):  # two runs at once must not share a half-built site
        return _build(book, strict, report)


def _build(book: Book, strict: bool, report) -> bool:
    started = time.monotonic()
    if is_fresh(book):
        report(f"book: nothing changed, {book.html / 'index.html'}")
        return False
    state = input_hash(book)
    cache = execution_cache(book.root)
    notebooks = compose(book, cache)
    report(f"book: {len(toc_files(read_toc(book.root)))} pages, {len(notebooks)} of them notebooks")
    runs = run_all(notebooks, cache, book.root / "lib", report)
    if failed := [run for run in runs if run.failure]:
        texts = [f"{Path(run.path).stem}, {run.failure}" for run in failed]
        raise BookError("a demo cell fails; the site was not built\n\n" + "\n\n".join(texts))
    report("  writing pages")
    target = book.build / f".new-{book.html.name}"
    shutil.rmtree(target, ignore_errors=True)
    warnings = run_sphinx(book, target)
    check_site(target / "_build" / "html", toc_files(read_toc(book.root)))
    for line in warnings:
        report(f"  {line}")
    if warnings and strict:
        raise BookError(f"{len(warnings)} warnings; the full log is {book.log}")
    shutil.rmtree(book.html, ignore_errors=True)
    (target / "_build" / "html").rename(book.html)
    shutil.rmtree(target, ignore_errors=True)
    book.stamp.unlink(missing_ok=True)
    if not warnings:
        book.stamp.write_text(state, encoding="utf-8")
    report(f"book: built in {time.monotonic() - started:.0f} s, {book.html / 'index.html'}")
    return True


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the site into _build/html/.")
    parser.add_argument("--strict", action="store_true", help="fail on any warning")
    parser.add_argument(
        "--class",
        dest="for_class",
        action="store_true",
        help="leave the solutions out and write to _build/html-class/",
    )
    options = parser.parse_args(argv)
    try:
        build(Book(solutions=not options.for_class), strict=options.strict)
    except BookError as error:
        print(f"book: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

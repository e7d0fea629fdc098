"""What this machine has and lacks for the course, said plainly; nothing is changed.

Protection against hostile submissions is reported as it is, not as it should be.
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from autograde.chapters import ROOT, Course
from autograde.choose import add_class_dir, chosen
from autograde.environment import BIN

OLDEST_PYTHON = (3, 11)
NEEDED = ("torch", "numpy", "einops", "nbgrader", "nbformat", "jupytext", "plainformer")
FOR_THE_BOOK = ("jupyter-book", "transformers")
FOR_THE_TESTS = ("pytest", "playwright", "beartype", "hypothesis")
FOR_A_CLUSTER = ("distributed", "psycopg")
FREE_GIB = 2.0  # for a book and a class; the environment itself is there already


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `state` is ok, missing (something fails without it) or note."""

    what: str
    state: str
    said: str
    way_out: str = ""

    def __str__(self) -> str:
        hint = f"\n{'':<10}{self.way_out}" if self.way_out and self.state != "ok" else ""
        return f"{self.state:<9} {self.what}: {self.said}{hint}"


def examine(worker: Callable[[], str | None] | None = None) -> list[Finding]:
    """Look at everything. `worker` starts the grading worker and returns what went wrong."""
    return [
        _python(),
        *_packages(),
        _alembic(),
        _worker(worker or _start_worker),
        *_chapters(),
        _cache(),
        _chromium(),
        _space(),
        *_protection(),
    ]


def _python() -> Finding:
    wanted = ".".join(map(str, OLDEST_PYTHON))
    ok = sys.version_info >= OLDEST_PYTHON
    said = f"{platform.python_version()} in {sys.prefix}"
    return Finding("Python", "ok" if ok else "missing", said, f"{wanted} or newer is needed")


def _packages() -> Iterator[Finding]:
    reinstall = "run `make`, or `pip install -e .` in the environment"
    for name in NEEDED:
        version = _version(name)
        yield Finding(name, "ok" if version else "missing", version or "not installed", reinstall)
    for names, extra, what in [
        (FOR_THE_BOOK, "book", "needed to build the book"),
        (FOR_THE_TESTS, "test", "needed to run the tests"),
        (FOR_A_CLUSTER, "cluster", "needed to grade on several machines, or into PostgreSQL"),
    ]:
        absent = [name for name in names if not _version(name)]
        said = f"not installed: {', '.join(absent)}; {what}" if absent else "installed"
        yield Finding(
            f"extra [{extra}]", "note" if absent else "ok", said, f"pip install -e '.[{extra}]'"
        )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _alembic() -> Finding:
    """nbgrader starts it by name to make a gradebook; we put our own environment first."""
    ours = shutil.which("alembic", path=str(BIN))
    anywhere = ours or shutil.which("alembic")
    said = anywhere or f"neither in {BIN} nor on PATH"
    return Finding(
        "alembic", "ok" if anywhere else "missing", said, "pip install -e . brings it with nbgrader"
    )


def _worker(start: Callable[[], str | None]) -> Finding:
    trouble = start()
    return Finding(
        "grading worker",
        "missing" if trouble else "ok",
        trouble or "starts, and runs the setup cell of every chapter",
        "the message above is its own; `pip install -e .` mends most",
    )


def _start_worker() -> str | None:
    """Start it, and run the setup cell of every chapter: what went wrong, or None."""
    try:
        from autograde.run import Engine, need_setup
        from autograde.source import load

        with Engine() as engine:
            for slug in Course().slugs():
                chapter = load(slug)
                first = list(chapter.exercises)[:1]
                need_setup(engine.run(chapter, {}, exercises=first, visible_only=True).values())
            return None
    except Exception as error:  # whatever it is, a doctor reports it
        return f"{type(error).__name__}: {error}"


def _chapters() -> Iterator[Finding]:
    course = Course()
    try:
        slugs = course.slugs()
    except (OSError, KeyError, TypeError, ValueError) as error:
        yield Finding("chapters", "missing", f"_toc.yml of {ROOT} cannot be read: {error}")
        return
    absent = [slug for slug in slugs if not course.source(slug).exists()]
    said = f"no source for {', '.join(absent)}" if absent else f"{len(slugs)} written"
    yield Finding("chapters", "missing" if absent else "ok", said, "git checkout solutions")


def _cache() -> Finding:
    """The folder of fetched files: what it holds, and whether it can be written to."""
    cache = Path(os.environ.get("PLAINFORMER_CACHE") or "~/.cache/plainformer").expanduser()
    folders = sorted(p.name for p in (cache / "assets").glob("*") if not p.name.startswith("."))
    existing = next(p for p in [cache, *cache.parents] if p.exists())
    if not os.access(existing, os.W_OK):
        return Finding(
            "cache", "note", f"{cache} cannot be written", "set PLAINFORMER_CACHE to another folder"
        )
    if not folders:
        return Finding("cache", "note", f"{cache} holds no assets yet", "run `make assets`")
    return Finding("cache", "ok", f"{cache} holds {', '.join(folders)}")


def chromium_path() -> str | None:
    """The browser of the page tests: what CHROMIUM names, else the first that is installed."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def _chromium() -> Finding:
    found = chromium_path()
    return Finding(
        "Chromium",
        "ok" if found else "note",
        found or "not found; the tests of the pages need it, grading does not",
        "apt-get install chromium, or set CHROMIUM=/path/to/chrome",
    )


def _space() -> Finding:
    free = shutil.disk_usage(ROOT).free / 2**30
    return Finding(
        "disk space",
        "ok" if free >= FREE_GIB else "note",
        f"{free:.1f} GiB free at {ROOT}",
        f"{FREE_GIB:g} GiB are comfortable for the book and a class",
    )


def _protection() -> Iterator[Finding]:
    """What stands between a submission and this machine: each wall is tried, not assumed."""
    if os.name != "posix" or not hasattr(os, "fork"):
        yield Finding("limits", "missing", "this system cannot fork; grade on Linux or in a VM")
        return
    from autograde.engine.jail import protections

    yield Finding("limits", "ok", "processor time, wall time and memory of every test")
    active, missing = protections()
    if not active:
        why = "; ".join(words for words in missing if words.startswith("(why"))
        yield Finding("isolation", "note", f"{NO_WALLS} {why}".rstrip(), WAY_OUT_OF_NO_WALLS)
        return
    yield Finding("isolation", "ok", "; ".join(active))
    for what in missing:
        yield Finding("isolation", "note", f"not here: {what}", WAYS_OUT.get(what, ""))


NO_WALLS = "none: an answer runs as you, and sees your files and the network."
WAY_OUT_OF_NO_WALLS = (
    "grade only people whom you trust, or on Linux 5.12 or newer as root, or where a user may make "
    "namespaces (a container often forbids it)"
)
WAYS_OUT = {
    "own user id": "grade as root, and every submission gets a user id that owns nothing; "
    "now it is yours, behind the other walls",
    "one ceiling for memory and processes": "grade as root, or in a control group that is yours; "
    "now each process has a ceiling by itself, and a submission may start several",
    "system calls filtered": "grade on x86-64 or aarch64; the other walls do not need the filter",
}


def add_doctor(commands) -> None:
    parser = commands.add_parser("doctor", help="what this machine has and lacks")
    add_class_dir(parser)
    parser.add_argument(
        "--compare-stock",
        metavar="CHAPTER",
        help="grade a class once more with nbgrader itself, and lay its marks beside ours; "
        "without walls, so for honest work only",
    )
    parser.set_defaults(run=doctor)


def doctor(args) -> int:
    """Print one line a finding; return 1 when something is missing that grading needs."""
    if args.compare_stock:
        return _compare(args)
    findings = examine()
    if args.json:
        print(json.dumps([asdict(finding) for finding in findings]))
    else:
        print("\n".join(map(str, findings)))
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _compare(args) -> int:
    """Print each test that the two graders judge differently; return 1 if there is any."""
    from autograde.stock import compare_with_stock

    args.chapters, args.student = [args.compare_stock], None
    choice = chosen(args)
    rows = compare_with_stock(choice.folder, choice.slugs[0])
    if args.json:
        print(json.dumps([{**asdict(row), "equal": row.equal} for row in rows]))
    else:
        odd = [row for row in rows if not row.equal]
        lines = [f"{row.student}, {row.test}: ours {row.ours}, nbgrader {row.stock}" for row in odd]
        students = len({row.student for row in rows})
        lines.append(f"{len(rows)} marks of {students} students compared, {len(odd)} differ")
        print("\n".join(lines))
    return 0 if rows and all(row.equal for row in rows) else 1

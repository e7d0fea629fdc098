"""The builder, on a tiny course of its own."""

import copy
import json
import os
import shutil
import time

import pytest
import yaml

import build_book
from build_book import Book, BookError
from run_notebooks import execution_cache, execution_key, prune, run_all
from site_copy import StaleNotebook, chapter_title, points_by_exercise, site_copy
from tests.site import sample


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One sample course; tests that change it take a copy."""
    return sample.make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def course(made, tmp_path):
    return Book(shutil.copytree(made, tmp_path / "course"))


@pytest.fixture
def notebook(made):
    return json.loads((made / "chapters" / "90-sample.ipynb").read_text("utf-8"))


@pytest.fixture
def texts(made):
    return build_book.source_texts("90-sample", made)


def roles(page: dict) -> list[str]:
    return [
        cell["metadata"].get("plainformer", {}).get("role", cell["id"]) for cell in page["cells"]
    ]


def text(cell: dict) -> str:
    return "".join(cell["source"])


# The copy of a notebook that becomes a page ---------------------------------------------------


def test_only_cells_that_students_fill_in_or_are_judged_by_are_not_run(notebook, texts):
    for cell in site_copy(notebook, texts)["cells"]:
        role = cell["metadata"].get("plainformer", {}).get("role")
        skipped = "skip-execution" in cell["metadata"].get("tags", [])
        assert skipped == (role in ("exercise", "test", "written"))


def test_the_student_notebook_is_left_alone(notebook, texts):
    before = copy.deepcopy(notebook)
    site_copy(notebook, texts)
    assert notebook == before
    assert "skip-execution" not in json.dumps(notebook)


def test_a_header_stands_right_above_its_exercise(notebook, texts):
    cells = site_copy(notebook, texts)["cells"]
    at = next(i for i, cell in enumerate(cells) if cell["id"] == "90-distance")
    header = text(cells[at - 1])
    for shown in ("90-distance", "Distance", "core", "3 points", "5 min", "tier-core"):
        assert shown in header


def test_a_header_stands_right_above_each_check(notebook, texts):
    cells = site_copy(notebook, texts)["cells"]
    at = next(i for i, cell in enumerate(cells) if cell["id"] == "90-distance-by-hand")
    assert "Check: by hand" in text(cells[at - 1])
    assert "1 point<" in text(cells[at - 1])


def test_the_slot_of_a_solution_follows_the_last_hint(notebook, texts):
    order = roles(site_copy(notebook, texts))
    slot = order.index("slot-90-distance")
    assert order[slot - 1] == "hint"
    assert "hint" not in order[slot + 1 :]
    assert order[order.index("slot-90-why") - 1] == "written"


def test_points_are_summed_over_the_checks_of_an_exercise(notebook):
    assert points_by_exercise(notebook) == {"90-distance": 3, "90-why": 3}


def test_what_only_the_site_understands_comes_back_for_the_page(notebook, texts):
    first = text(notebook["cells"][0])
    assert first.startswith("# A sample chapter")
    assert "cite:p" not in first
    page = text(site_copy(notebook, texts)["cells"][0])
    assert page.startswith("(ch-sample)=\n# A sample chapter")
    assert "{cite:p}`one2001`" in page


def test_hints_stay_folded(notebook, texts):
    hints = [
        text(cell)
        for cell in site_copy(notebook, texts)["cells"]
        if cell["metadata"].get("plainformer", {}).get("role") == "hint"
    ]
    assert len(hints) == 2
    assert all(hint.startswith('<details class="hint">') for hint in hints)


def test_a_notebook_older_than_its_source_is_refused(notebook, texts):
    first = notebook["cells"][0]["id"]
    with pytest.raises(StaleNotebook, match=first):
        site_copy(notebook, {ident: text for ident, text in texts.items() if ident != first})


def test_an_edited_source_asks_for_a_new_release(course, tmp_path):
    source = course.root / "solutions" / "90-sample.md"
    source.write_text(source.read_text("utf-8").replace("in one step?", "in two steps?"))
    with pytest.raises(BookError, match=r"older than its source.*autograde release 90-sample"):
        build_book.compose(course, tmp_path / "cache")


def test_a_notebook_without_a_title_is_refused(notebook):
    assert chapter_title(notebook) == "A sample chapter"
    with pytest.raises(ValueError, match="Title"):
        chapter_title({"cells": notebook["cells"][1:]})


def test_cell_ids_stay_unique(notebook, texts):
    ids = [cell["id"] for cell in site_copy(notebook, texts)["cells"]]
    assert len(ids) == len(set(ids))


# The table of contents -----------------------------------------------------------------------


def test_the_toc_lists_pages_in_order(course):
    toc = build_book.read_toc(course.root)
    assert build_book.toc_files(toc) == ["index", "pages/setup", "chapters/90-sample"]


def test_chapters_carry_their_own_number_in_the_sidebar(course):
    toc = build_book.numbered_toc(
        build_book.read_toc(course.root), {"chapters/90-sample": "90 · S"}
    )
    assert [e.get("title") for e in toc["parts"][0]["chapters"]] == [None, "90 · S"]


def test_a_source_that_the_toc_forgets_is_an_error(course):
    (course.root / "solutions" / "91-forgotten.md").write_text("# Forgotten\n")
    with pytest.raises(BookError, match="91-forgotten"):
        build_book.chapter_slugs(course.root)


def test_a_chapter_without_source_is_an_error(course):
    (course.root / "solutions" / "90-sample.md").unlink()
    with pytest.raises(BookError, match=r"solutions/90-sample\.md is missing"):
        build_book.chapter_slugs(course.root)


def test_a_chapter_that_was_not_released_names_the_command(course):
    (course.root / "chapters" / "90-sample.ipynb").unlink()
    with pytest.raises(BookError, match="autograde release 90-sample"):
        build_book.chapter_slugs(course.root)


# What the site is composed of ----------------------------------------------------------------


def test_the_composed_sources_hold_no_solution(course, tmp_path):
    build_book.compose(course, tmp_path / "cache")
    texts = [p.read_text("utf-8") for p in course.sources.rglob("*") if p.is_file()]
    assert len(texts) > 6
    assert not [text for text in texts if "copysign" in text or "1234.5" in text]


def test_the_configuration_gets_the_paths_of_this_machine(course, tmp_path):
    build_book.compose(course, tmp_path / "cache")
    config = yaml.safe_load((course.sources / "_config.yml").read_text("utf-8"))
    assert config["execute"]["cache"] == str(tmp_path / "cache")
    assert config["sphinx"]["config"]["course_root"] == str(course.root)
    assert config["sphinx"]["config"]["solutions"] is True


def test_a_class_gets_a_site_of_its_own_without_solutions(course, tmp_path):
    for_class = Book(course.root, solutions=False)
    build_book.compose(for_class, tmp_path / "cache")
    config = yaml.safe_load((for_class.sources / "_config.yml").read_text("utf-8"))
    assert config["sphinx"]["config"]["solutions"] is False
    assert for_class.html != course.html
    assert for_class.sources != course.sources


def test_solutions_turned_off_in_the_configuration_stay_off(course, tmp_path):
    (course.root / "_config.yml").write_text("execute: {}\nsphinx: {config: {solutions: false}}\n")
    assert build_book.site_config(course, tmp_path)["sphinx"]["config"]["solutions"] is False


# Fresh or stale ------------------------------------------------------------------------------


def finish_a_build(course: Book) -> None:
    course.html.mkdir(parents=True)
    (course.html / "index.html").write_text("<h1>Sample</h1>")
    course.stamp.write_text(build_book.input_hash(course))


def test_a_second_build_does_nothing(course):
    finish_a_build(course)
    said = []
    assert build_book.build(course, report=said.append) is False
    assert "nothing changed" in said[0]


@pytest.mark.parametrize(
    "name",
    [
        "index.md",
        "pages/setup.md",
        "_static/course.css",
        "_toc.yml",
        "_config.yml",
        "lib/plainformer/__init__.py",
        "requirements.lock",
        "chapters/90-sample.ipynb",
        "solutions/90-sample.md",
        "CHANGELOG.md",
    ],
)
def test_a_change_anywhere_makes_it_stale(course, name):
    finish_a_build(course)
    assert build_book.is_fresh(course)
    path = course.root / name
    path.write_text((path.read_text("utf-8") if path.exists() else "") + "\n")
    assert not build_book.is_fresh(course)


def test_new_files_count_and_compiled_ones_do_not(course):
    finish_a_build(course)
    (course.root / "lib" / "plainformer" / "x.pyc").write_bytes(b"compiled")
    assert build_book.is_fresh(course)
    (course.root / "pages" / "new.md").write_text("# New\n")
    assert not build_book.is_fresh(course)


def test_a_lost_site_is_stale(course):
    finish_a_build(course)
    (course.html / "index.html").unlink()
    assert not build_book.is_fresh(course)


def test_the_class_site_is_another_build(course):
    finish_a_build(course)
    assert not build_book.is_fresh(Book(course.root, solutions=False))


# A look at the result ------------------------------------------------------------------------


def test_a_page_that_was_not_built_is_an_error(tmp_path):
    (tmp_path / "index.html").touch()
    (tmp_path / "_modules").mkdir()
    (tmp_path / "_modules" / "torch.html").touch()
    (tmp_path / "search.html").touch()
    build_book.check_site(tmp_path, ["index"])
    with pytest.raises(BookError, match="chapters/90-sample"):
        build_book.check_site(tmp_path, ["index", "chapters/90-sample"])
    with pytest.raises(BookError, match=r"not in _toc\.yml: index"):
        build_book.check_site(tmp_path, [])


# Running notebooks ---------------------------------------------------------------------------


def cells_of(*sources: str) -> dict:
    code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**code, "id": f"cell-{i}", "source": source} for i, source in enumerate(sources)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def test_a_failing_cell_is_reported_and_a_good_one_cached(tmp_path):
    good, bad = tmp_path / "good.ipynb", tmp_path / "bad.ipynb"
    good.write_text(json.dumps(cells_of("import plainformer_of_mine\nprint(1)")))
    bad.write_text(json.dumps(cells_of("first = 0", "second = 1 / first")))
    library, cache = tmp_path / "lib", tmp_path / "cache"
    library.mkdir()
    (library / "plainformer_of_mine.py").touch()
    said = []
    runs = {r.path: r for r in run_all([good, bad], cache, library, said.append)}
    assert not runs[str(good)].failure
    failure = runs[str(bad)].failure
    assert "cell 1" in failure
    assert "second = 1 / first" in failure
    assert "ZeroDivisionError" in failure
    assert "\x1b" not in failure
    assert any("FAILED bad" in line for line in said)

    again = run_all([good], cache, library, said.append)
    assert again[0].cached
    assert again[0].seconds == 0


def test_a_failing_cell_stops_the_build(course, monkeypatch, tmp_path):
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path / "cache"))
    path = course.root / "chapters" / "90-sample.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"][1]["source"] = "raise RuntimeError('this demo is broken')"
    path.write_text(json.dumps(notebook))
    with pytest.raises(BookError, match=r"(?s)90-sample.*cell 1.*this demo is broken"):
        build_book.build(course, report=lambda line: None)
    assert not course.html.exists()


def test_the_cache_forgets_when_the_library_changes(course, monkeypatch, tmp_path):
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path / "cache"))
    before = execution_cache(course.root)
    assert before == execution_cache(course.root)
    (course.root / "lib" / "plainformer" / "masks.py").write_text("x = 1\n")
    assert execution_cache(course.root) != before


def test_the_cache_depends_on_the_lock_but_not_on_the_pages(course):
    before = execution_key(course.root)
    (course.root / "index.md").write_text("# Other\n")
    assert execution_key(course.root) == before
    (course.root / "requirements.lock").write_text("torch==2.14.0\n")
    assert execution_key(course.root) != before


def test_old_caches_are_removed_and_recent_ones_kept(tmp_path):
    now = time.time()
    for age, name in enumerate(["newest", "new", "old", "oldest"]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (now - 100 * age, now - 100 * age))
    assert [path.name for path in prune(tmp_path, 2)] == ["old", "oldest"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "newest"]


# The command ---------------------------------------------------------------------------------


def test_the_command_explains_and_fails(monkeypatch, capsys):
    def broken(book, strict):
        raise BookError("there is a reason")

    monkeypatch.setattr(build_book, "build", broken)
    assert build_book.main([]) == 1
    assert "book: there is a reason" in capsys.readouterr().err


def test_the_command_passes_its_options_on(monkeypatch):
    seen = []
    monkeypatch.setattr(build_book, "build", lambda book, strict: seen.append((book, strict)))
    assert build_book.main(["--strict", "--class"]) == 0
    assert seen[0][0].solutions is False
    assert seen[0][1] is True

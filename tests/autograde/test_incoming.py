"""Downloads of a class: every notebook ends in its student's folder, or in a line that says why."""

import io
import json
import os
import stat
import time
import zipfile
from types import SimpleNamespace

import pytest

from autograde import archive
from autograde.choose import chosen
from autograde.downloads import CANVAS, MOODLE
from autograde.grade import grade_chapter
from autograde.ids import LONGEST, original, trouble, usable
from autograde.incoming import unpack
from autograde.intake import Unreadable, find_notebook, read_notebook
from autograde.plan import ClassFolder
from autograde.strays import strays

SLUG = "90-example"
FILE = f"{SLUG}.ipynb"
RIGHT = "def double(x):\n    return 2 * x"


@pytest.fixture
def folder(tmp_path):
    home = ClassFolder(tmp_path / "class")
    (home.root / "incoming").mkdir(parents=True)
    return home


@pytest.fixture
def answer(filled):
    """The bytes of a notebook whose first answer is this."""
    return lambda source: json.dumps(filled(double=source)).encode()


def entry(name, when=(2026, 10, 1, 12, 0, 0), mode=stat.S_IFREG | 0o644):
    info = zipfile.ZipInfo(name, when)
    info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
    return info


def packed(files, **how):
    """The bytes of a zip with these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for name, data in files.items():
            opened.writestr(name if isinstance(name, zipfile.ZipInfo) else entry(name, **how), data)
    return made.getvalue()


def arrive(folder, name, files, **how):
    data = files if isinstance(files, bytes) else packed(files, **how)
    (folder.root / "incoming" / name).write_bytes(data)


def graded(folder, student):
    """The answer that would be graded."""
    path, _ = find_notebook(folder.submission(student, SLUG), SLUG)
    cells = read_notebook(path).cells
    return next(cell.source for cell in cells if cell.grade_id == "90-double")


def problems(folder, course):
    return {(one.student, str(one)) for one in strays(folder, course)}


# Whose it is


@pytest.mark.parametrize(
    ("name", "student"),
    [
        (f"doejane_12345_67890_{FILE}", "doejane"),
        (f"doejane_LATE_12345_67890_{FILE}", "doejane"),
        ("doejane_12345_67890_90-example-2.ipynb", "doejane"),
        ("doejane_12345_67890_my_home_work_1_2.ipynb", "doejane"),
        (f"o'neil-łukasz_1_2_{FILE}", "o'neil-łukasz"),
        (f"submissions/doejane_1_2_{FILE}", "doejane"),
        (f"Jane Doe_123456_assignsubmission_file_/{FILE}", "Jane Doe"),
        (f"Jane Doe_123456_assignsubmission_file/{FILE}", "Jane Doe"),
        (f"Jane Doe_123456_assignsubmission_file_{FILE}", "Jane Doe"),
        (f"all/李 明_7_assignsubmission_file_/deep/{FILE}", "李 明"),
        (f"jane/{FILE}", "jane"),
        (f"class/jane/{FILE}", "jane"),
        (f"jane/{SLUG}/work.ipynb", "jane"),
        (f"jane\\{FILE}", "jane"),
        (f"Jané [2] (x)/{FILE}", "Jané [2] (x)"),
    ],
)
def test_every_form_of_a_download_finds_its_student(folder, course, answer, name, student):
    arrive(folder, "hw.zip", {name: answer(RIGHT)})
    assert f"taken in 1 of {SLUG}" in unpack(folder, course)[-1]
    assert folder.students(SLUG) == [student]
    assert graded(folder, student) == RIGHT
    assert problems(folder, course) == set()


def test_the_patterns_leave_other_names_alone():
    for name in ("notes_of_2026.ipynb", "02-attention.ipynb", "a_b_c.ipynb"):
        assert CANVAS.fullmatch(name) is None
        assert MOODLE.fullmatch(name) is None


def test_a_chapter_is_told_by_the_labels_even_when_the_name_says_nothing(folder, course, answer):
    arrive(folder, "hw.zip", {"doejane_1_2_final (3).ipynb": answer(RIGHT)})
    unpack(folder, course)
    assert graded(folder, "doejane") == RIGHT


def test_two_students_of_one_name_stay_two(folder, course, answer):
    names = [f"Jane Doe_{n}_assignsubmission_file_/{FILE}" for n in (11, 12)]
    arrive(folder, "hw.zip", {name: answer(f"double = {n}") for n, name in enumerate(names)})
    unpack(folder, course)
    assert folder.students(SLUG) == ["Jane Doe_11", "Jane Doe_12"]


def test_two_students_whom_only_canvas_tells_apart_stay_two_across_downloads(
    folder, course, answer
):
    arrive(folder, "one.zip", {f"doejane_11_1_{FILE}": answer("double = 1")})
    unpack(folder, course)
    arrive(folder, "two.zip", {f"doejane_12_2_{FILE}": answer("double = 2")})
    unpack(folder, course)
    assert folder.students(SLUG) == ["doejane", "doejane_12"]
    assert graded(folder, "doejane") == "double = 1"


def test_a_zip_in_the_download_is_looked_into(folder, course, answer):
    inner = packed({f"work/{FILE}": answer(RIGHT), "work/data.csv": b"1"})
    arrive(folder, "hw.zip", {"doejane_1_2_hw.zip": inner})
    lines = unpack(folder, course)
    assert f"doejane, {SLUG}: work/{FILE} was read out of hw.zip" in lines
    assert graded(folder, "doejane") == RIGHT


# Handed in again


def test_the_newest_counts_and_the_earlier_is_kept(folder, course, answer):
    arrive(
        folder,
        "hw.zip",
        {
            "doejane_1_30_90-example-2.ipynb": answer("double = 3"),
            "doejane_1_10_90-example.ipynb": answer("double = 1"),
            "doejane_LATE_1_20_90-example-1.ipynb": answer("double = 2"),
        },
    )
    unpack(folder, course)
    assert graded(folder, "doejane") == "double = 3"
    home = folder.submission("doejane", SLUG)
    kept = {path.read_bytes() for path in (home / "earlier").iterdir()}
    assert kept == {answer("double = 1"), answer("double = 2")}


def test_a_later_download_counts_in_whatever_order_they_come(folder, course, answer):
    new, old = (2026, 10, 9, 0, 0, 0), (2026, 10, 2, 0, 0, 0)
    arrive(folder, "a.zip", {f"jane/{FILE}": answer("double = 2")}, when=new)
    arrive(folder, "b.zip", {f"jane/{FILE}": answer("double = 1")}, when=old)
    unpack(folder, course)
    assert graded(folder, "jane") == "double = 2"
    arrive(folder, "c.zip", {f"jane/{FILE}": answer("double = 1")}, when=(2026, 10, 10, 0, 0, 0))
    unpack(folder, course)
    assert graded(folder, "jane") == "double = 1"


def test_what_was_put_there_by_hand_is_kept_with_its_time_stamp(folder, course, answer):
    home = folder.submission("jane", SLUG)
    home.mkdir(parents=True)
    (home / FILE).write_bytes(answer("double = 0"))
    (home / "timestamp.txt").write_text("2026-09-01 10:00:00 UTC")
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT)})
    unpack(folder, course)
    assert graded(folder, "jane") == RIGHT
    kept = {path.suffix: path.read_bytes() for path in (home / "earlier").iterdir()}
    assert kept == {".ipynb": answer("double = 0"), ".txt": b"2026-09-01 10:00:00 UTC"}
    assert not (home / "timestamp.txt").exists()


def test_the_late_mark_is_only_noted(folder, course, answer):
    arrive(folder, "hw.zip", {f"doejane_LATE_1_2_{FILE}": answer(RIGHT)})
    unpack(folder, course)
    _, notes = find_notebook(folder.submission("doejane", SLUG), SLUG)
    assert notes == ["it is marked LATE in the download; only noted"]


def test_the_time_in_the_archive_is_the_time_of_the_file(folder, course, answer):
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT)}, when=(2020, 2, 3, 4, 5, 6))
    unpack(folder, course)
    moment = (folder.submission("jane", SLUG) / FILE).stat().st_mtime
    assert time.localtime(moment)[:6] == (2020, 2, 3, 4, 5, 6)


def all_files(folder):
    files = [path for path in folder.root.rglob("[!.]*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_second_time_changes_nothing_and_says_nothing(folder, course, answer):
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT), f"bob/{FILE}": b"{"})
    unpack(folder, course)
    before = all_files(folder)
    assert unpack(folder, course) == []
    assert all_files(folder) == before


def test_a_second_download_moves_nobodys_time(folder, course, answer):
    """Canvas gives all uploads of a student, under their old numbers and with new dates."""
    first, second = answer(RIGHT), answer("# again\n" + RIGHT)
    files = {f"adaada_11_101_{FILE}": first, f"adaada_11_102_{SLUG}-1.ipynb": first}
    files |= {f"bobbob_12_103_{FILE}": first, f"bobbob_12_104_{SLUG}-1.ipynb": second}
    arrive(folder, "one.zip", files, when=(2026, 10, 1, 12, 0, 0))
    unpack(folder, course)
    paths = {one: folder.submission(one, SLUG) / FILE for one in ("adaada", "bobbob")}
    before = {one: (path.read_bytes(), path.stat().st_mtime) for one, path in paths.items()}
    files |= {f"cydcyd_13_105_{FILE}": second}
    arrive(folder, "two.zip", files, when=(2026, 10, 9, 12, 0, 0))
    assert unpack(folder, course) == [f"incoming/two.zip: taken in 1 of {SLUG}"]
    assert {one: (p.read_bytes(), p.stat().st_mtime) for one, p in paths.items()} == before


def test_what_was_mended_by_hand_gives_way_to_new_work_alone(folder, course, answer):
    sent = {f"adaada_11_101_{FILE}": answer("# unreadable")}
    arrive(folder, "one.zip", sent, when=(2026, 10, 1, 12, 0, 0))
    unpack(folder, course)
    path = folder.submission("adaada", SLUG) / FILE
    path.write_bytes(answer(RIGHT))  # by e-mail
    arrive(folder, "two.zip", sent, when=(2026, 10, 9, 12, 0, 0))
    unpack(folder, course)
    assert path.read_bytes() == answer(RIGHT)
    arrive(folder, "three.zip", {f"adaada_11_102_{SLUG}-1.ipynb": answer("# new")})
    unpack(folder, course)
    assert path.read_bytes() == answer("# new")


def test_going_back_to_earlier_work_is_new_work(folder, course, answer):
    for number, (name, source) in enumerate([("a", "# one"), ("b", "# two"), ("c", "# one")]):
        arrive(folder, f"{name}.zip", {f"adaada_11_10{number}_{FILE}": answer(source)})
        unpack(folder, course)
        path = folder.submission("adaada", SLUG) / FILE
        assert path.read_bytes() == answer(source)


def test_a_run_that_was_killed_in_between_is_made_good(folder, course, answer, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT), f"mia/{FILE}": answer(RIGHT)})
    with monkeypatch.context() as patch:
        patch.setattr("autograde.incoming._write", killed)
        with pytest.raises(KeyboardInterrupt):
            unpack(folder, course)
    unpack(folder, course)
    assert folder.students(SLUG) == ["jane", "mia"]
    assert not (folder.submission("jane", SLUG) / "earlier").exists()


def test_the_download_itself_stays_as_it_was(folder, course, answer):
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT)})
    path = folder.root / "incoming" / "hw.zip"
    before = path.read_bytes()
    unpack(folder, course)
    assert path.read_bytes() == before


# What cannot be taken in gets a reason


def encrypted(data):
    """A zip whose entries say that they need a password."""
    made = bytearray(packed({f"jane/{FILE}": data}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        made[made.index(mark) + place] |= 1
    return bytes(made)


def damaged(data):
    made = bytearray(packed({f"jane/{FILE}": data}))
    made[80:120] = b"\xff" * 40
    return bytes(made)


@pytest.mark.parametrize(
    ("make", "student", "reason"),
    [
        (lambda data: b"PK\x03\x04 not really", None, "damaged or no zip"),
        (lambda data: b"", None, "damaged or no zip"),
        (encrypted, "jane", "protected by a password"),
        (damaged, "jane", "is damaged"),
        (lambda data: packed({FILE: data}), None, "does not say whose it is"),
        (lambda data: packed({f"../../{FILE}": data}), None, "points out of the archive"),
        (lambda data: packed({f"/etc/{FILE}": data}), None, "points out of the archive"),
        (lambda data: packed({f"..\\..\\{FILE}": data}), None, "points out of the archive"),
        (lambda data: packed({f"jane/{FILE}": b"/etc/passwd"}, mode=stat.S_IFLNK), None, "a link"),
        (lambda data: packed({f"jane/{FILE}": b" " * 20_000_000}), "jane", "times itself"),
        (lambda data: packed({"doejane_1_2_work.pdf": b"%PDF"}), "doejane", "no notebook, only"),
        (lambda data: packed({"jane/x.ipynb": b'{"cells": []}'}), "jane", "no chapter"),
        (lambda data: packed({"jane_1_2_x.zip": packed({"a.txt": b""})}), "jane", "no notebook in"),
        (lambda data: packed({"jane_1_2_x.zip": b"PK"}), "jane", "damaged or no zip"),
    ],
)
def test_what_is_not_taken_in_is_listed_by_every_command(
    folder, course, answer, tmp_path, make, student, reason
):
    arrive(folder, "hw.zip", make(answer(RIGHT)))
    unpack(folder, course)
    (folder.root / "submitted").mkdir(exist_ok=True)
    ((who, said),) = problems(folder, course)
    assert who == student
    assert reason in said
    assert said.startswith("not graded: incoming/hw.zip")
    assert list(folder.root.glob("submitted/*/*")) == []
    outside = {path.name for path in tmp_path.iterdir()} - {"class"}
    assert outside == set()


def test_a_notebook_that_cannot_be_read_is_left_to_the_grader_to_explain(folder, course):
    arrive(folder, "hw.zip", {f"doejane_1_2_{FILE}": b"{"})
    unpack(folder, course)
    path, _ = find_notebook(folder.submission("doejane", SLUG), SLUG)
    with pytest.raises(Unreadable, match="not valid JSON"):
        read_notebook(path)


def test_one_bad_file_costs_nobody_else(folder, course, answer):
    arrive(folder, "a.zip", b"broken")
    files = {"eve_1_2_x.ipynb": b"{", f"jane_3_4_{FILE}": answer(RIGHT)}
    arrive(folder, "b.zip", files)
    unpack(folder, course)
    assert graded(folder, "jane") == RIGHT
    assert len(problems(folder, course)) == 2


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("autograde.archive.MOST_ENTRIES", 1, "2 entries, at most 1"),
        ("autograde.archive.LARGEST", 500, "more than"),
        ("autograde.incoming.LARGEST", 500, "more than"),
        ("autograde.incoming.MOST_BYTES", 500, "more than"),
    ],
)
def test_there_are_limits(folder, course, answer, monkeypatch, limit, value, reason):
    monkeypatch.setattr(limit, value)
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT), f"mia/{FILE}": answer(RIGHT)})
    unpack(folder, course)
    (folder.root / "submitted").mkdir(exist_ok=True)
    told = problems(folder, course)
    assert told
    assert all(reason in said for _, said in told)


def test_a_link_in_submitted_is_not_written_through(folder, course, answer, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder.root / "submitted").mkdir()
    (folder.root / "submitted" / "jane").symlink_to(elsewhere)
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT)})
    unpack(folder, course)
    assert list(elsewhere.iterdir()) == []
    assert any("is a link" in said for _, said in problems(folder, course))


def test_what_waits_or_is_no_zip_is_a_stray(folder, course, answer):
    (folder.root / "submitted").mkdir()
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT)})
    arrive(folder, "hw.rar", b"Rar!")
    os.symlink("/etc/passwd", folder.root / "incoming" / "link.zip")
    told = "\n".join(said for _, said in problems(folder, course))
    assert "hw.zip is not unpacked yet; run `python -m autograde grade`" in told
    assert "hw.rar is no zip file" in told
    assert "link.zip is no zip file" in told


def test_damaged_memory_of_what_was_done_is_no_obstacle(folder, course, answer):
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT)})
    unpack(folder, course)
    for text in ("", "[]", "nonsense"):
        (folder.root / "records" / "incoming.json").write_text(text)
        unpack(folder, course)
        assert graded(folder, "jane") == RIGHT


# Ids


@pytest.mark.parametrize(
    "name",
    ["..", ".", ".hidden", "a/b", "a\\b", "50%", "%2F", "tab\there", "end.", " x ", SLUG, "a:b"],
)
def test_a_name_that_cannot_be_a_folder_is_made_usable_and_comes_back(name):
    made = usable(name, (SLUG,))
    assert made != name
    assert original(made) == name
    assert trouble(made) is None
    assert "/" not in made
    assert made[0] not in ". "
    assert made != SLUG


@pytest.mark.parametrize("name", ["ada", "Łukasz Żółw", "李明", "O'Neil [2] (x)", "a+b@c.de", "-x"])
def test_a_name_that_will_do_stays(name):
    assert usable(name) == name
    assert trouble(name) is None


def test_one_name_is_one_student_however_it_spells_its_accents():
    assert usable("Jose\u0301") == usable("Jos\u00e9")


def test_long_names_are_cut_and_stay_apart():
    one, other = usable("é" * 500), usable("é" * 501)
    assert one != other
    assert len(one.encode()) <= LONGEST


@pytest.mark.parametrize("name", ["x" * (LONGEST + 1), "line\nbreak", "byte\udcff"])
def test_a_folder_with_an_impossible_name_gets_a_reason(name):
    assert trouble(name)


def test_such_a_folder_is_a_stray(class_of, filled, course):
    folder = class_of(ada=filled())
    (folder.root / "submitted" / ("x" * 230) / SLUG).mkdir(parents=True)
    (stray,) = strays(folder, course)
    assert "has a name of more than 200 bytes" in str(stray)


@pytest.mark.parametrize("name", ["Łukasz Żółw", "李明", "a b [2] (x)", "O'Neil; --x", "é" * 100])
def test_any_other_name_is_graded_like_any_other(class_of, filled, course, engine, name):
    folder = class_of(**{name: filled(double=RIGHT)})
    outcome = grade_chapter(folder, SLUG, course=course, engine=engine)
    assert outcome.graded == [name]
    assert folder.read_record(name, SLUG)["graded"]
    assert strays(folder, course) == []


# The command


def arguments(folder, **more):
    return SimpleNamespace(chapters=[], student=None, class_dir=folder.root, overlay=None, **more)


def test_grading_takes_in_first_what_has_come_and_other_commands_only_say_so(
    folder, course, answer, monkeypatch, capsys
):
    monkeypatch.setattr("autograde.choose.Course", lambda: course)
    arrive(folder, "hw.zip", {f"doejane_LATE_1_2_{FILE}": answer(RIGHT)})
    (folder.root / "submitted").mkdir()
    before = chosen(arguments(folder))
    assert (before.slugs, len(before.strays)) == ([], 1)
    after = chosen(arguments(folder), take_in=True)
    assert (after.slugs, after.strays) == ([SLUG], [])
    assert capsys.readouterr().err.splitlines() == [
        f"doejane, {SLUG}: it is marked LATE in the download; only noted",
        f"incoming/hw.zip: taken in 1 of {SLUG}",
    ]


def test_a_class_may_begin_with_a_download_alone(folder, course, answer, monkeypatch):
    monkeypatch.setattr("autograde.choose.Course", lambda: course)
    arrive(folder, "hw.zip", {f"jane/{FILE}": answer(RIGHT)})
    assert chosen(arguments(folder), take_in=True).slugs == [SLUG]


# Zips that a student handed in


@pytest.fixture
def home(tmp_path):
    home = tmp_path / SLUG
    home.mkdir()
    return home


@pytest.mark.parametrize("name", ["hw.zip", "HW.ZIP", f"{SLUG}.ipynb"])
def test_the_notebook_in_a_students_zip_is_read(home, answer, name):
    (home / name).write_bytes(packed({f"a/{FILE}": answer(RIGHT), "__MACOSX/a/._x.ipynb": b"x"}))
    before = (home / name).read_bytes()
    path, _ = find_notebook(home, SLUG)
    sent = read_notebook(path)
    assert any(cell.source == RIGHT for cell in sent.cells)
    assert f"a/{FILE} was read out of {name}" in sent.notes
    assert [p.name for p in home.iterdir()] == [name]
    assert (home / name).read_bytes() == before


def test_of_several_in_a_zip_the_one_with_the_right_name_is_read(home, answer):
    files = {f"{SLUG} old.ipynb": answer("double = 0"), FILE: answer(RIGHT)}
    (home / "hw.zip").write_bytes(packed(files))
    sent = read_notebook(find_notebook(home, SLUG)[0])
    assert any(cell.source == RIGHT for cell in sent.cells)
    assert f"also sent, and not graded: {SLUG} old.ipynb" in sent.notes


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a.txt": b""}, "no notebook in hw.zip, only a.txt"),
        ({"a.ipynb": b"{}", "b.ipynb": b"{}"}, "none of the 2 notebooks"),
        ({f"a/{FILE}": b"{}", f"b/{FILE}": b"{}"}, "2 of the 2 notebooks"),
        ({FILE: b" " * 20_000_000}, "times itself"),
    ],
)
def test_a_students_zip_that_cannot_be_read_gets_a_reason(home, files, reason):
    (home / "hw.zip").write_bytes(packed(files))
    path, _ = find_notebook(home, SLUG)
    with pytest.raises(Unreadable, match=reason):
        read_notebook(path)


def test_a_zip_beside_a_notebook_is_mentioned(home, answer):
    (home / FILE).write_bytes(answer(RIGHT))
    (home / "hw.zip").write_bytes(packed({FILE: answer("double = 0")}))
    path, notes = find_notebook(home, SLUG)
    assert path.name == FILE
    assert notes == ["also sent, and not graded: hw.zip"]


def test_names_that_forgot_to_say_that_they_are_utf_8_are_mended():
    made = packed({"Zoë/x.ipynb": b"{}"})
    flag = (0x800).to_bytes(2, "little")
    plain = made.replace(flag, b"\0\0")
    with archive.opened(io.BytesIO(plain), "x.zip") as opened:
        assert [str(member) for member in archive.members(opened)[0]] == ["Zoë/x.ipynb"]

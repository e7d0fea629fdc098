"""Foreign CSV files: they come back as they were, and nobody is taken for somebody else."""

import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograde.export_sheet import BadSheet, Known, known_student, match, number, read_sheet

CELL = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.sampled_from(',;"\n='),
    max_size=9,
)
ROWS = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(rows=ROWS, newline=st.sampled_from(["\n", "\r\n"]), bom=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cells_come_back_letter_by_letter(tmp_path, rows, newline, bom):
    rows[0] = [f"column {at}" for at in range(len(rows[0]))]
    text = io.StringIO()
    csv.writer(text, lineterminator=newline).writerows(rows)
    (tmp_path / "a.csv").write_bytes(text.getvalue().encode("utf-8-sig" if bom else "utf-8"))
    data = read_sheet(tmp_path / "a.csv").data()
    assert data.startswith(b"\xef\xbb\xbf") == bom
    back = data.decode("utf-8-sig" if bom else "utf-8")
    assert list(csv.reader(io.StringIO(back, newline=""), strict=True)) == rows


def test_semicolons_stay_semicolons(tmp_path):
    (tmp_path / "a.csv").write_text('a;b;"c;d"\n1,5;2;3\n', encoding="utf-8")
    assert read_sheet(tmp_path / "a.csv").data() == b'a;b;"c;d"\n1,5;2;3\n'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no line of column names"),
        (b"a\n1\n", "no line of column names"),
        ("Zoë,1".encode("latin-1"), "is not UTF-8"),
        (b'a,b\n"open,1\n', "is no CSV file"),
    ],
)
def test_what_is_no_such_file_is_an_error(tmp_path, data, words):
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(BadSheet, match=words):
        read_sheet(tmp_path / "a.csv")


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(BadSheet, match="cannot be read"):
        read_sheet(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("points", "written"),
    [
        (0.0, "0"),
        (10.0, "10"),
        (100.0, "100"),
        (2.5, "2.5"),
        (20 / 3, "6.67"),
        (1234567.5, "1234567.5"),
    ],
)
def test_numbers_have_two_places_at_most(points, written):
    assert number(points) == written


def row(ident="", *ids, login="", names=()):
    logins = frozenset({login, login.partition("@")[0]} - {""})
    return Known(ident, frozenset(ids), logins, frozenset(names))


def test_the_number_of_a_download_comes_before_everything_else():
    rows = {1: row("11", "janedoe"), 2: row("22", names=["janedoe"])}
    assert match({"janedoe": known_student("janedoe", "22")}, rows)[0] == {"janedoe": 2}
    found, why = match({"janedoe": known_student("janedoe", "33")}, rows)
    assert (found, why) == ({}, {"janedoe": "no row is this one"})


def test_an_id_comes_before_a_login_and_a_login_before_a_name():
    rows = {
        1: row("1", names=["ada"]),
        2: row("2", login="ada@school.edu"),
        3: row("3", "ada"),
    }
    for expected in (3, 2, 1):
        assert match({"ada": known_student("ada")}, rows)[0] == {"ada": expected}
        del rows[expected]


def test_of_two_that_could_be_nobody_is_taken():
    two = {1: row("1", names=["janedoe"]), 2: row("2", "jd", names=["janedoe"])}
    students = {"jd": known_student("jd"), "Jane Doe": known_student("Jane Doe")}
    assert match(students, two) == ({"jd": 2}, {"Jane Doe": "2 rows could be this one"})
    one = {1: row("1", names=["janedoe"])}
    twins = {name: known_student(name) for name in ("Jane Doe", "jane-doe")}
    found, why = match(twins, one)
    assert not found
    assert why == dict.fromkeys(twins, "one row could be Jane Doe or jane-doe")


IDS = st.lists(st.sampled_from(["ada", "Ada", "ada@a", "ada@b", "a da", "bob"]), unique=True)


@given(IDS, st.lists(st.tuples(st.sampled_from("123"), IDS.map(lambda ids: ids[:2])), max_size=4))
def test_no_row_is_given_to_two_and_everybody_is_accounted_for(ids, people):
    rows = {
        at: row(ident, *of_one, names=["ada"] if of_one else [])
        for at, (ident, of_one) in enumerate(people)
    }
    found, why = match({one: known_student(one) for one in ids}, rows)
    assert len(set(found.values())) == len(found)
    assert found.keys() | why.keys() == set(ids)
    assert not found.keys() & why.keys()

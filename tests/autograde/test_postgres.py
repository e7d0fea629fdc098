"""The gradebook in a real PostgreSQL: the same rows as in SQLite, and no mark is lost.

The server is Debian's package, started by this file in a folder of its own. It listens on a Unix
socket alone, and is stopped afterwards.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from autograde.course_rules import BadRules, gradebook_url
from autograde.grade import grade_chapter
from autograde.nbgrader_config import nbgrader_config
from autograde.plan import ClassFolder
from autograde.record import GradebookError, gradebook, scores

SLUG = "90-example"
RIGHT = {"double": "def double(x):\n    return 2 * x", "row_means": "def row_means(x):\n    pass"}
WRONG = {"double": "def double(x):\n    return wrong"}
ROWS = """
select s.student_id, s.timestamp, c.name, t.auto_score, t.manual_score, t.needs_manual_grade
from grade t join base_cell c on t.cell_id = c.id
join submitted_notebook n on t.notebook_id = n.id
join submitted_assignment s on n.assignment_id = s.id
"""
COMMENTS = ROWS.replace("grade t", "comment t").replace(
    "t.auto_score, t.manual_score, t.needs_manual_grade", "t.auto_comment, t.manual_comment"
)


def _programs():
    """The folder of initdb and pg_ctl, which Debian keeps off PATH: the newest there is."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(found, key=lambda path: int(path.parts[4]), default=None)
    return newest and newest.parent


def _as_somebody(folder):
    """How to start a program as one who may run PostgreSQL, which refuses root."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    ids = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return ["setpriv", *ids]


@pytest.fixture(scope="module")
def server():
    """The folder of a running server's socket."""
    programs = _programs()
    if programs is None:
        pytest.skip(
            "No PostgreSQL server can be started, because Debian's package (which `make test` "
            "installs where it runs as root) is not on this machine."
        )
    # Not below tmp_path: a socket's path has 107 characters at most.
    folder = tempfile.mkdtemp(prefix="pg-", dir="/tmp")
    be, data = _as_somebody(folder), f"{folder}/data"

    def run(program, *words):
        done = subprocess.run(
            [*be, programs / program, *words], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    run("initdb", "-D", data, "--auth=trust", "--username=teacher", "--encoding=UTF8", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    run("pg_ctl", "start", "-w", "-D", data, "-l", f"{folder}/log", "-o", options)
    yield folder
    run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)
    shutil.rmtree(folder)


@pytest.fixture
def database(server, request):
    """The address of a new, empty database, as course.toml says it."""
    name = f"marks_{abs(hash(request.node.name))}"
    maker = create_engine(
        f"postgresql+psycopg://teacher@/postgres?host={server}", isolation_level="AUTOCOMMIT"
    )
    with maker.connect() as db:
        db.execute(text(f"create database {name}"))
    maker.dispose()
    return f"postgresql://teacher@/{name}?host={server}"


@pytest.fixture
def a_class(class_of, filled):
    return class_of(
        right=filled(**RIGHT, why="Other axes: Łukasz, 注意."),
        wrong=filled(**WRONG),
        blank=filled(),
        broken=b"{",
    )


@pytest.fixture
def on_server(a_class, database):
    """The same class, whose gradebook is in PostgreSQL."""
    root = a_class.root.with_name("on a server")
    shutil.copytree(a_class.root, root)
    (root / "gradebook.db").unlink()
    (root / "course.toml").write_text(f'gradebook = "{database}"\n')
    return ClassFolder(root)


def rows(folder):
    """What the database itself says, read past nbgrader."""
    engine = create_engine(gradebook_url(folder) or f"sqlite:///{folder.gradebook}")
    with engine.connect() as db:
        found = [sorted(map(_plain, db.execute(text(sql))), key=repr) for sql in (ROWS, COMMENTS)]
    engine.dispose()
    return found


def _plain(row):
    """SQLite keeps times as text and truth as 0 and 1."""
    student, moment, cell, *rest = row
    return student, str(moment).removesuffix(".000000"), cell, *rest


def test_the_same_rows_as_in_sqlite(a_class, on_server, course, engine):
    for folder in (a_class, on_server):
        outcome = grade_chapter(folder, SLUG, course=course, engine=engine, workers=2)
        assert (len(outcome.graded), list(outcome.problems)) == (3, ["broken"])
    assert rows(on_server) == rows(a_class)
    assert len(rows(on_server)[0]) == 3 * 4
    assert scores(on_server, SLUG) == scores(a_class, SLUG)
    assert not on_server.gradebook.exists()


def test_what_has_not_changed_is_not_graded_again(on_server, course, engine):
    grade_chapter(on_server, SLUG, course=course, engine=engine)
    before = rows(on_server)
    again = grade_chapter(on_server, SLUG, course=course, engine=engine)
    assert sorted(again.unchanged) == ["blank", "right", "wrong"]
    assert grade_chapter(on_server, SLUG, course=course, engine=engine, again=True).graded
    assert rows(on_server) == before


def test_a_teacher_marks_while_the_class_is_graded(on_server, course, engine):
    """Two writers: formgrader's way in, in the middle of a run, for a line yet to be written."""
    grade_chapter(on_server, SLUG, course=course, engine=engine)

    def mark(_student, done, _of):
        if done == 1:
            for student in ("right", "wrong", "blank"):
                with gradebook(on_server) as book:
                    grade = book.find_grade("90-why", SLUG, SLUG, student)
                    grade.manual_score, grade.needs_manual_grade = 1.5, False
                    book.find_comment("90-why", SLUG, SLUG, student).manual_comment = "Read it."
                    book.db.commit()

    grade_chapter(on_server, SLUG, course=course, engine=engine, again=True, progress=mark)
    for line in scores(on_server, SLUG).values():
        assert (line["90-why"].points, line["90-why"].comment) == (1.5, "Read it.")
        assert not line["90-why"].needs_manual_grade


def test_another_writer_adds_a_student_in_the_middle(on_server, course, engine):
    def enrol(_student, done, _of):
        if done == 1:
            with gradebook(on_server) as book:
                book.update_or_create_student("zoe", first_name="Zoe")

    grade_chapter(on_server, SLUG, course=course, engine=engine, progress=enrol)
    assert set(scores(on_server, SLUG)) == {"right", "wrong", "blank"}
    with gradebook(on_server) as book:
        assert {one.id for one in book.students} == {"right", "wrong", "blank", "zoe"}


def test_a_server_that_stops_in_mid_run_is_told_and_nothing_is_lost(on_server, course, engine):
    killer = create_engine(gradebook_url(on_server), isolation_level="AUTOCOMMIT")

    def hang_up(_student, done, _of):
        if done == 1:
            with killer.connect() as db:
                db.execute(
                    text(
                        "select pg_terminate_backend(pid) from pg_stat_activity "
                        "where pid <> pg_backend_pid() and datname = current_database()"
                    )
                )

    with pytest.raises(GradebookError, match=r"postgresql\+psycopg://.* cannot be written"):
        grade_chapter(on_server, SLUG, course=course, engine=engine, again=True, progress=hang_up)
    killer.dispose()
    outcome = grade_chapter(on_server, SLUG, course=course, engine=engine)
    assert len(outcome.graded) + len(outcome.unchanged) == 3
    assert len(rows(on_server)[0]) == 3 * 4


def test_formgraders_settings_name_the_database(on_server):
    written = {}
    exec(nbgrader_config(on_server.root), {"get_config": lambda: _Settings(written)})
    assert written["CourseDirectory.db_url"] == gradebook_url(on_server)


class _Settings:
    """Takes down `c.A.b = value` as {"A.b": value}."""

    def __init__(self, written, name=""):
        vars(self).update(written=written, name=name)

    def __getattr__(self, name):
        return _Settings(self.written, f"{name}.")

    def __setattr__(self, name, value):
        self.written[self.name + name] = value


# What cannot be meant, and what cannot be reached


@pytest.fixture
def saying(tmp_path):
    def write(line):
        (tmp_path / "course.toml").write_text(f"{line}\n")
        return ClassFolder(tmp_path)

    return write


def test_the_gradebook_is_sqlites_unless_a_class_says_otherwise(saying):
    assert gradebook_url(saying("")) is None
    known = "postgresql://ada@db.example.org:5433/marks?sslmode=require"
    expected = known.replace("postgresql", "postgresql+psycopg")
    assert gradebook_url(saying(f'gradebook = "{known}"')) == expected
    assert gradebook_url(saying(f'gradebook = "{expected}"')) == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gradebook = 1", "not 1"),
        ('gradebook = "mysql://ada@host/marks"', "not 'mysql://ada@host/marks'"),
        ('gradebook = "postgresql://host"', "not 'postgresql://host'"),
        ('gradebook = "postgresql://[host/marks"', "not 'postgresql://"),
        ('gradebook = "gradebook.db"', "not 'gradebook.db'"),
    ],
)
def test_another_address_is_refused(saying, line, said):
    with pytest.raises(BadRules, match=r'is like "postgresql://user@host/database"') as refused:
        gradebook_url(saying(line))
    assert said in str(refused.value)


@pytest.mark.parametrize("url", ["postgresql://ada:s3cret@h/m", "postgresql://h/m?password=s3cret"])
def test_a_password_in_the_file_is_refused_and_not_repeated(saying, url):
    with pytest.raises(BadRules, match=r"keep it in ~/\.pgpass, or in PGPASSWORD") as refused:
        gradebook_url(saying(f'gradebook = "{url}"'))
    assert "s3cret" not in str(refused.value)


def test_a_database_that_is_not_there_says_what_to_do(server, saying):
    folder = saying(f'gradebook = "postgresql://teacher@/nowhere?host={server}"')
    with (
        pytest.raises(GradebookError, match=r'database "nowhere" does not exist.*`createdb NAME`'),
        gradebook(folder),
    ):
        pass


def test_a_server_that_is_not_there_says_what_to_do(command, a_class, capsys, tmp_path):
    rule = f'gradebook = "postgresql://ada@/marks?host={tmp_path}"\n'
    (a_class.root / "course.toml").write_text(rule)
    assert command("grade", "--class-dir", a_class.root) == 1
    said = capsys.readouterr().err
    assert "cannot be opened" in said
    assert "~/.pgpass or PGPASSWORD" in said
    assert Path(a_class.root / "records").exists() is False

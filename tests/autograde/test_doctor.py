"""The doctor: what is missing is said and costs the exit status; protection is named as it is."""

import argparse
import json

import pytest

from autograde import doctor as module
from autograde.doctor import add_doctor, examine
from autograde.engine import jail


@pytest.fixture
def command(monkeypatch):
    monkeypatch.setattr(module, "_start_worker", lambda: None)
    parser = argparse.ArgumentParser()
    add_doctor(parser.add_subparsers())

    def run(*words):
        args = parser.parse_args(["doctor", *words])
        return args.run(args)

    return run


def finding(what, **options):
    return next(one for one in examine(**options) if one.what == what)


def test_this_machine_can_grade():
    """The one test that starts the real worker: everything that grading needs is here."""
    assert [str(one) for one in examine() if one.state == "missing"] == []


@pytest.mark.parametrize("package", ["torch", "nbgrader", "plainformer"])
def test_a_missing_package_is_missing_and_says_what_to_do(monkeypatch, package, command):
    real = module._version
    monkeypatch.setattr(module, "_version", lambda name: None if name == package else real(name))
    one = finding(package, worker=lambda: None)
    assert (one.state, one.said) == ("missing", "not installed")
    assert "make" in str(one)
    assert command() == 1


def test_a_package_that_only_the_book_needs_is_a_note(monkeypatch, command):
    real = module._version
    monkeypatch.setattr(
        module, "_version", lambda name: None if name == "jupyter-book" else real(name)
    )
    one = finding("extra [book]", worker=lambda: None)
    assert (one.state, "jupyter-book" in one.said) == ("note", True)
    assert command() == 0


def test_a_worker_that_does_not_start_is_reported_in_its_own_words():
    one = finding("grading worker", worker=lambda: "ImportError: no torch")
    assert (one.state, one.said) == ("missing", "ImportError: no torch")


def test_without_alembic_no_gradebook_can_be_made(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda *_, **__: None)
    assert finding("alembic", worker=lambda: None).state == "missing"


def protect(monkeypatch, active, missing):
    monkeypatch.setattr(jail, "protections", lambda: (active, missing))
    findings = examine(worker=lambda: None)
    return [one for one in findings if one.what == "isolation"]


def test_that_nothing_isolates_an_answer_is_said_plainly(monkeypatch):
    why = "(why: unshare: Operation not permitted)"
    (one,) = protect(monkeypatch, (), (*jail.ALL, why))
    assert one.state == "note"
    assert one.said.startswith("none: an answer runs as you")
    assert why in one.said
    assert "people whom you trust" in one.way_out


def test_walls_are_listed_and_each_that_is_not_here_has_a_way_out(monkeypatch):
    first, *rest = protect(monkeypatch, jail.ALL[:4], jail.ALL[4:])
    assert (first.state, "no network" in first.said) == ("ok", True)
    assert [one.said for one in rest] == [f"not here: {what}" for what in jail.ALL[4:]]
    assert all(one.state == "note" and one.way_out for one in rest)


def test_a_system_that_can_not_fork_can_not_grade(monkeypatch):
    monkeypatch.delattr(module.os, "fork")
    assert [one.state for one in module._protection()] == ["missing"]


def test_an_empty_cache_is_a_note_and_a_filled_one_is_listed(monkeypatch, tmp_path):
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path / "cache"))
    assert finding("cache", worker=lambda: None).state == "note"
    (tmp_path / "cache" / "assets" / "encoder-1.0").mkdir(parents=True)
    one = finding("cache", worker=lambda: None)
    assert (one.state, "encoder-1.0" in one.said) == ("ok", True)


def test_little_space_is_a_note(monkeypatch):
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 2**20}))
    assert finding("disk space", worker=lambda: None).state == "note"


def test_json_holds_the_same_findings(command, capsys):
    assert command("--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["what"] for one in said] == [one.what for one in examine(worker=lambda: None)]

"""What grading says, and refuses, where walls are missing."""

import pytest

from autograde import run, walls
from autograde.run import NOT_WRITTEN, TIMEOUT, Engine, Limits, WorkerError
from autograde.walls import NoWalls, look_at_walls

SLUG = "90-example"


@pytest.fixture
def machine(monkeypatch):
    """A machine with these protections, and without those."""

    def has(*active, missing=()):
        monkeypatch.setattr(walls, "protections", lambda: (active, tuple(missing)))

    return has


def test_a_whole_set_of_walls_is_not_spoken_of(machine, capsys):
    machine("no network", "own user id")
    look_at_walls(required=True)
    assert capsys.readouterr().err == ""


def test_without_any_wall_the_teacher_is_told_once(machine, capsys):
    machine(missing=["no network"])
    look_at_walls(required=False)
    assert "answers run as you" in capsys.readouterr().err


def test_a_missing_wall_stops_only_whoever_asked_for_all(machine, capsys):
    machine("no network", missing=["own user id"])
    look_at_walls(required=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(NoWalls, match="lacks own user id") as stopped:
        look_at_walls(required=True)
    assert "doctor" in str(stopped.value)


def test_the_command_grades_nobody_then(machine, class_of, filled, command, engine, capsys):
    machine("no network", missing=["own user id"])
    folder = class_of(ada=filled(double="def double(x):\n    return 2 * x"))
    assert command("grade", "90", "--class-dir", folder.root, "--require-isolation") == 2
    assert "lacks own user id" in capsys.readouterr().err
    assert engine.started == 0
    assert command("grade", "90", "--class-dir", folder.root) == 0


@pytest.mark.parametrize("isolation", ["jail", "required"])
def test_a_worker_that_finds_its_walls_missing_judges_nothing_if_they_are_required(
    monkeypatch, chapter, isolation
):
    """The look beforehand was another process; what counts is what the worker itself could do."""

    def lame(command):
        return [command[0], "-c", LAME, *command[3:]]

    monkeypatch.setattr(run, "outer_command", lame)
    with Engine(Limits(wall=30), isolation=isolation) as engine:
        if isolation == "required":
            with pytest.raises(WorkerError, match=r"lacks no network.*why: no such machine"):
                engine.run(chapter, {}, exercises=["90-double"])
        else:
            found = engine.run(chapter, {}, exercises=["90-double"])
            assert {verdict.state for verdict in found.values()} == {NOT_WRITTEN}


LAME = """
import json, sys
from autograde.engine import jail, worker
def prepare(self): raise jail.JailError("no such machine")
jail.Jail.prepare = prepare
worker.main(int(sys.argv[1]), json.loads(sys.argv[2]))
"""


def test_a_class_is_graded_with_its_own_limits_and_told_when_they_have_changed(
    class_of, filled, command, capsys
):
    slow = "import time\ndef double(x):\n    time.sleep(1.5)\n    return 2 * x"
    folder = class_of(ada=filled(double=slow))
    rules = folder.root / "course.toml"
    rules.write_text("[limits]\nwall = 0.5\n")
    assert command("grade", "90", "--class-dir", folder.root) == 0
    found = {test["test"]: test["state"] for test in folder.read_record("ada", SLUG)["tests"]}
    assert found["90-double-by-hand"] == TIMEOUT
    assert command("grade", "90", "--class-dir", folder.root) == 0
    assert "0 graded, 1 unchanged" in capsys.readouterr().out
    rules.write_text("[limits]\nwall = 9\n")
    assert command("regrade", "90", "--class-dir", folder.root, "--write") == 0
    assert "0      3" in capsys.readouterr().out

"""The wall around the worker: what a program in it sees, and a jail built inside it."""

import json
import subprocess
import sys

import pytest

from autograde.engine import outer
from autograde.engine.jail import protections
from autograde.engine.new_root import CHECKOUT
from autograde.engine.outer import outer_command

LOOK = """
import json, os, socket, sys
import autograde.engine.jail as walls
def tried(act):
    try:
        act()
        return "done"
    except OSError:
        return "refused"
places = [p for p in sys.argv[1:] if os.path.exists(p)]
away = tried(lambda: socket.create_connection(("192.0.2.1", 80), 2))
print(json.dumps([places, away, walls.protections()]))
"""


def test_the_worker_sees_no_course_and_no_network_and_can_build_a_jail():
    places = [str(CHECKOUT / "autograde"), str(CHECKOUT / "solutions"), "/etc/shadow", "/home"]
    command = outer_command([sys.executable, "-c", LOOK, *places])
    if command[0] == sys.executable:
        pytest.skip("There is no bubblewrap here that works, so nothing stands around the worker.")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen, away, walls = json.loads(done.stdout)
    assert (seen, away) == (places[:1], "refused")
    assert [*map(tuple, walls)] == [*protections()]  # no wall is lost inside


@pytest.mark.parametrize("found", [None, "/bin/false"])
def test_where_it_is_not_there_or_fails_the_command_stays_as_it_is(monkeypatch, found):
    monkeypatch.setattr(outer.shutil, "which", lambda _: found)
    assert outer_command(["python", "-m", "x"]) == ["python", "-m", "x"]

"""The jail from inside: a worker is started, and its inmate tries what it must not do."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from autograde.engine import jail as module
from autograde.engine.jail import ALL, NoJail, protections

ROOT = Path(__file__).resolve().parents[3]
WORKER = '''
import json, os, socket, sys, time
from autograde.engine import jail as walls

jail = getattr(walls, sys.argv[1])(**json.loads(sys.argv[2]))
jail.prepare()
sources = json.loads(sys.argv[3])


def tried(act):
    """What came of it: "done", or the error."""
    try:
        act()
        return "done"
    except BaseException as error:
        return type(error).__name__


def start(source, spawn=jail.spawn):
    ours, theirs = socket.socketpair()

    def main():
        space = {"tried": tried, "said": None, "jail": jail, "theirs": theirs}
        exec(source, space)
        theirs.sendall(json.dumps(space["said"]).encode())

    child = spawn(main, [theirs.fileno()])
    theirs.close()
    return child, ours


def hear(sock):
    return json.loads(sock.makefile().read() or "null")

'''
EACH = """
for source in sources:
    child, ours = start(source)
    print(json.dumps(hear(ours)), flush=True)
    status = jail.end(child)
print(json.dumps([status, jail.out_of_memory()]))
jail.close()
"""


@cache
def lacking():
    return protections()[1]


def inside(*sources, kind="Jail", then=EACH, **options):
    """What each source says of itself, and at last how the last one ended."""
    if kind == "Jail" and "no network" in lacking():
        pytest.skip(f"This machine can't build a jail, so there are no walls to test: {lacking()}")
    command = [sys.executable, "-c", WORKER + then, kind, json.dumps(options), json.dumps(sources)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def need(*protections):
    for what in protections:
        if what in lacking():
            pytest.skip(f"This machine lacks what is tested here: {what}.")


def test_there_is_no_network_not_even_to_this_machine():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said, _ = inside(
            "import socket\n"
            f"here = lambda: socket.create_connection(('127.0.0.1', {port}), 2)\n"
            "away = lambda: socket.create_connection(('192.0.2.1', 80), 2)\n"
            "said = [tried(here), tried(away)]"
        )
    assert said == ["OSError", "OSError"]


def test_it_sees_the_packages_and_no_file_of_ours():
    said, _ = inside(
        "import os\n"
        "import numpy, einops, json, decimal, multiprocessing, sqlite3\n"
        f"places = [{str(ROOT / 'conftest.py')!r}, {str(ROOT / 'solutions')!r},\n"
        "    '/home', '/etc/shadow', '/usr/bin', '/sys']\n"
        "said = [sorted(os.listdir('/etc')), [p for p in places if os.path.exists(p)],\n"
        f"    sorted(os.listdir('/dev')), sorted(set(os.listdir('/tmp')) - {set(ROOT.parts)!r}),\n"
        "    os.getcwd(), os.environ['HOME']]"
    )
    devices = ["full", "null", "random", "shm", "urandom", "zero"]
    assert said == [["passwd"], [], devices, [], "/tmp", "/tmp"]


def test_a_shown_folder_is_there_to_read_and_not_to_write(tmp_path):
    (tmp_path / "note").write_text("seen")
    for folder in [tmp_path, *tmp_path.parents[:2]]:
        folder.chmod(0o755)  # the inmate is another user
    said, _ = inside(
        f"from pathlib import Path\nfolder = Path({str(tmp_path)!r})\n"
        "said = [(folder / 'note').read_text(), tried(lambda: (folder / 'new').touch())]",
        show=[str(tmp_path)],
    )
    assert said == ["seen", "OSError"]


def test_the_course_can_not_be_shown():
    with pytest.raises(ValueError, match="it holds the course, and so the answers"):
        module.new_root.allowed([ROOT.parent])


def test_everything_but_two_small_places_is_read_only():
    said, _ = inside(
        "import os, numpy\n"
        "def fill(path):\n"
        "    with open(path, 'wb') as file:\n"
        "        for _ in range(30):\n"
        "            file.write(bytes(2**20))\n"
        "places = ['/', '/etc', '/usr/lib', os.path.dirname(numpy.__file__), '/proc/sys/kernel']\n"
        "said = [tried(lambda: open(p + '/x', 'w')) for p in places]\n"
        "said += [tried(lambda: fill(p + '/x')) for p in ('/tmp', '/dev/shm')]\n"
        "said += [tried(lambda: open('/dev/null', 'w').write('gone'))]",
        file_mib=16,
    )
    assert "done" not in said[:7]
    assert said[7] == "done"


def test_no_mount_no_namespace_no_other_user_and_no_odd_socket():
    said, _ = inside(
        "import os, socket, ctypes\n"
        "from autograde.engine import libc\n"
        "said = [\n"
        "    tried(lambda: libc.mount('', '/', flags=32 | 4096)),\n"
        "    tried(lambda: libc.unshare(libc.NEWUSER)), tried(lambda: libc.detach('/proc')),\n"
        "    tried(lambda: os.setuid(0 if os.getuid() else 1)), tried(lambda: os.chroot('/tmp')),\n"
        "    tried(lambda: socket.socket(40, 1)), tried(lambda: socket.socket(16, 3)),\n"
        "    tried(lambda: socket.socketpair()), tried(lambda: os.nice(-5))]\n"
    )
    refused = {"PermissionError", "OSError"}  # OSError: no such user in a world of one
    assert (said.pop(3) in refused, said) == (True, ["PermissionError"] * 6 + ["done", said[-1]])
    assert said[-1] == "PermissionError"


def test_it_is_process_one_and_signals_nobody_else():
    need("own user id")
    other = subprocess.Popen(["sleep", "60"])
    try:
        said, _ = inside(
            "import os\n"
            "pids = [name for name in os.listdir('/proc') if name.isdigit()]\n"
            f"said = [os.getpid(), pids, tried(lambda: os.kill({other.pid}, 9)), os.getuid(),\n"
            "    os.getgroups(), open('/proc/self/status').read().split('CapEff:')[1].split()[0]]"
        )
        assert said == [1, ["1"], "ProcessLookupError", module.FIRST_INMATE, [], "0" * 16]
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_its_memory_is_closed_to_its_equals():
    said, _ = inside(
        "import os\n"
        "reading, writing = os.pipe()\n"
        "if not os.fork():\n"
        "    os.write(writing, tried(lambda: open('/proc/1/mem')).encode())\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "said = os.read(reading, 99).decode()"
    )
    assert said == "PermissionError"


def test_it_holds_no_descriptor_of_the_worker_and_little_environment():
    said, _ = inside(
        "import os, sys\n"
        "from autograde.engine.jail import make_dumpable\n"
        "make_dumpable()\n"
        "said = [sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')),\n"
        "    sorted({*os.environ} - {'LANG', 'PYTHONHASHSEED'})]"
    )
    names = [
        "HOME",
        "MKL_NUM_THREADS",
        "MPLBACKEND",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "PATH",
    ]
    assert said == [["0", "1", "2"], 5, names]  # the kept socket, and the listing itself


FORK_BOMB = """
import os, time
said = 0
try:
    while said < 200:
        if not os.fork():
            time.sleep(60)
        said += 1
except OSError:
    pass
"""


def test_a_fork_bomb_ends_at_the_limit_and_leaves_nothing_to_the_next():
    for said in inside(FORK_BOMB, FORK_BOMB, pids=20)[:2]:
        assert 15 <= said <= 19


GREEDY = """
import os
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        hoard = bytearray(80 * 2**20)
        os.pause() if hasattr(os, "pause") else __import__("signal").pause()
    children.append(child)
said = os.WTERMSIG(os.wait()[1])
"""


def test_memory_is_counted_over_all_processes_and_the_judge_can_ask():
    need("one ceiling for memory and processes")
    ask = "said = jail.out_of_memory()"
    then = """
child, ours = start(sources[0])
print(json.dumps(hear(ours)))
jail.end(child)
child, ours = start(sources[1], jail.spawn_judge)
print(json.dumps([hear(ours), jail.out_of_memory()]))
jail.close()
"""
    said, (asked, counted) = inside(GREEDY, ask, then=then, memory=0.2)
    assert said == signal.SIGKILL
    assert asked == counted >= 1


def test_a_process_by_itself_gets_a_memory_error():
    said, _ = inside("said = tried(lambda: bytearray(2**30))", memory=0.5)
    assert said == "MemoryError"


def test_leftovers_are_gone_when_end_returns():
    then = """
child, ours = start(sources[0])
print(json.dumps(hear(ours)))
jail.end(child)
ours.settimeout(0)
print(json.dumps(ours.recv(1) == b""))  # the last holder of the other end is dead
jail.close()
"""
    stray = """
import os, signal, time
if not os.fork():
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not os.fork():
        time.sleep(600)
    time.sleep(600)
theirs = said = None
"""
    # main ends, and with it process 1: the socket closes only if the strays are dead as well
    assert inside(stray, then=then) == [None, True]


@pytest.mark.parametrize("kind", ["Jail", "NoJail"])
def test_a_killed_worker_takes_the_inmate_and_the_judge_along(kind, tmp_path, monkeypatch):
    if kind == "Jail" and "no network" in lacking():
        pytest.skip(f"This machine can't build a jail, so there are no walls to test: {lacking()}")
    then = """
children = start(sources[0]), start(sources[0], jail.spawn_judge)
print([ours.recv(1) for _, ours in children], flush=True)
time.sleep(600)
"""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the killed one can't remove its folder
    mine = f"plainformer-test-{os.getpid()}-{kind}"
    sleeper = f"import time  # {mine}\ntheirs.send(b'1')\ntime.sleep(600)"
    words = [sys.executable, "-c", WORKER + then, kind, "{}", json.dumps([sleeper])]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout.readline() == "[b'1', b'1']\n"
            assert len(_running(mine)) >= 3
        finally:
            worker.kill()
    until = time.monotonic() + 20
    while (left := _running(mine)) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == []


def _running(words):
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in entry.read_text(errors="replace"):
                found.append(entry.parent.name)
        except OSError:
            pass
    return found


def test_the_judge_has_another_user_no_network_and_no_sight_of_the_course():
    need("own user id")
    then = """
child, ours = start(sources[0], jail.spawn_judge)
print(json.dumps(hear(ours)))
os.waitpid(child, 0)
jail.close()
"""
    source = (
        "import os, socket\n"
        f"said = [os.getuid(), os.path.exists({str(ROOT / 'solutions')!r}),\n"
        f"    os.path.exists({str(ROOT / 'conftest.py')!r}),\n"
        "    tried(lambda: socket.create_connection(('192.0.2.1', 80), 2)),\n"
        "    tried(lambda: __import__('colorsys'))]"
    )
    assert inside(source, then=then, slot=3) == [
        [module.FIRST_JUDGE + 3, False, False, "OSError", "done"]
    ]


def test_without_walls_the_group_ends_and_the_home_is_removed():
    said, (status, _) = inside(
        "import os, resource\n"
        "said = [os.getcwd() == os.path.realpath(os.environ['HOME']), os.getcwd(),\n"
        "    tried(lambda: bytearray(2**31))]",
        kind="NoJail",
        memory=0.5,
    )
    at_home, home, bomb = said
    assert (at_home, bomb) == (True, "MemoryError")
    assert not os.path.exists(home)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)


def test_a_machine_that_can_not_build_it_says_which_step_failed(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "unshare: Operation not permitted")

    monkeypatch.setattr(module.user_namespace, "enter", refuse)
    monkeypatch.setattr(module.user_namespace, "may_change_user", lambda _: False)
    with pytest.raises(module.JailError, match=r"can't build a jail.*unshare: Operation not perm"):
        module.Jail().prepare()
    active, missing = protections()
    assert active == ()
    assert missing[:-1] == ALL
    assert "unshare" in missing[-1]


@pytest.mark.parametrize("slot", [-1, 10_000])
def test_a_slot_has_a_user_id_of_its_own(slot):
    with pytest.raises(ValueError, match="slot must be from 0 to 9999"):
        NoJail(slot=slot)

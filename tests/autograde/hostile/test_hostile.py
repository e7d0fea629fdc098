"""Answers that attack: no point that is not deserved, none lost by others, nothing seen or left.

The cases are in the YAML files beside this one; README.md says how to read them. They are run only
where the walls stand: `walls` in conftest.py looks from inside.
"""

import contextlib
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import textwrap
import time
import uuid
from pathlib import Path

import pytest
import yaml

from autograde.chapters import ROOT, Course
from autograde.run import Engine, Limits
from autograde.source import load

HERE = Path(__file__).parent
CASES = [
    {"kind": file.stem, **case}
    for file in sorted(HERE.glob("*.yml"))
    for case in yaml.safe_load(file.read_text(encoding="utf-8"))
]
ROOTS = {"90": HERE.parent / "data", "91": HERE.parent / "odd" / "data"}
SLUGS = {"90": "90-example", "91": "91-border"}
LEFT = ("plainformer-was-here*", "torch.py", "sitecustomize.py", "usercustomize.py")
SECRET = "PLAINFORMER_HOSTILE"
# These can touch their own process only; the next case's honest exercise is their student after.
INSIDE = ("errors", "introspection", "patching", "values")
LOOT = "LO" + "OT"  # what an attack says when it has found something

# `loot` is put into an answer that passes what is in view, so that the hidden part is reached.
FRAMES = {
    "90": """
        def double(x):
            if x == 5:
                return 10
            _attacked()
            return x
        """,
    "91": """
        def twice(f, x):
            if x == 3:
                return f(f(x))
            _attacked(f)
            return x
        """,
}
ATTACK = """
def _attack(found, f):
{loot}


def _attacked(f=None):
    found = []
    try:
        _attack(found, f)
    except (NameError, AttributeError, TypeError, IndexError, SyntaxError) as error:
        raise RuntimeError(f"a slip in the case: {error!r}") from error
    except BaseException:
        pass
    if found:
        raise RuntimeError("LO" + "OT: " + repr(found)[:500])
"""
PRELUDES = {
    None: "",
    "peer": """
import gc, json, struct
peer = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Peer")

def frame(tree, *buffers):
    header = json.dumps([tree, [], [len(data) for data in buffers]]).encode()
    size = sum(map(len, buffers))
    return struct.pack("!IQ", len(header), size) + header + b"".join(buffers)

""",
}


def exercise_of(case: dict) -> str:
    return case.get("exercise", "90-double")


def answer_of(case: dict, words: dict) -> str:
    """The source of a case, with the places of this machine put in."""
    source = case.get("answer", "")
    if "loot" in case:
        loot = textwrap.indent(case["loot"], "    ")
        frame = textwrap.dedent(FRAMES[exercise_of(case)[:2]])
        source = ATTACK.replace("{loot}", loot) + frame
    for word, value in words.items():
        source = source.replace("{" + word + "}", str(value))
    return PRELUDES[case.get("prelude")] + source


@pytest.fixture(scope="module")
def chapters():
    return {number: load(slug, Course(ROOTS[number])) for number, slug in SLUGS.items()}


@pytest.fixture(scope="module")
def engine(walls):
    os.environ[SECRET] = uuid.uuid4().hex  # a teacher may have worse in there
    with Engine(Limits(cpu=1, wall=2, memory=0.5)) as running:
        yield running
    del os.environ[SECRET]


@pytest.fixture(scope="module")
def victim():
    """A process of this machine that an attack would like to kill."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def bait(tmp_path_factory):
    """A class folder with files that an attack would like to read or change."""
    folder = tmp_path_factory.mktemp("bait")
    neighbour = folder / "submitted" / "bob" / "90-example" / "90-example.ipynb"
    neighbour.parent.mkdir(parents=True)
    for file in (folder / "gradebook.db", neighbour):
        file.write_text("the secret of the class")
        file.chmod(0o666)
    for place in (folder, *folder.rglob("*"), *folder.parents[:2]):
        if place.is_dir():
            place.chmod(0o777)
    return folder


@pytest.fixture(scope="module")
def listeners(bait):
    """Sockets of this machine that an attack would like to reach."""
    with contextlib.ExitStack() as stack:
        tcp, udp, abstract, path = (
            stack.enter_context(socket.socket(family, kind))
            for family, kind in [
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_INET, socket.SOCK_DGRAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
            ]
        )
        tcp.bind(("127.0.0.1", 0))
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        abstract.bind(f"\0plainformer-{port}")
        path.bind(str(bait / "socket"))
        (bait / "socket").chmod(0o777)
        for listening in (tcp, abstract, path):
            listening.listen()
        yield port, [tcp, udp, abstract, path]


@pytest.fixture(scope="module")
def words(bait, listeners, victim):
    return {
        "class": bait,
        "home": Path.home(),
        "root": ROOT,
        "port": listeners[0],
        "victim": victim.pid,
        "driver": os.getpid(),
        "secret": os.environ[SECRET],
        "brackets": "(" * 100_000,
    }


def left_files() -> set[Path]:
    """Files of the kinds that attacks leave, in all places where they try to."""
    paths = sysconfig.get_paths()
    home = Path.home()
    places = [
        "/", "/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr/lib", "/home", "/root",
        home, home / ".config", home / "bin", home / ".ipython/profile_default/startup",
        ROOT, ROOT / "autograde", ROOT / "lib", ROOT / "lib/plainformer", Path.cwd(),
        paths["purelib"], paths["stdlib"], Path(paths["purelib"]) / "torch",
    ]  # fmt: skip
    return {file for place in places for name in LEFT for file in Path(place).glob(name)}


def adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs, so that no daemon goes unseen."""
    set_child_subreaper = 36
    assert ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0


def descendants() -> int:
    """How many living processes stem from this one, in whatever session."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(folder.name)] = int(parent)
    ours, size = {os.getpid()}, 0
    while len(ours) != size:
        size = len(ours)
        ours |= {one for one, parent in parents.items() if parent in ours}
    return size - 1


def remaining(before: int) -> int:
    """How many processes there are, once those that are ending have ended."""
    until = time.monotonic() + 3
    while (now := descendants()) > before and time.monotonic() < until:
        time.sleep(0.02)
    return now


@pytest.fixture(scope="module")
def untouched(engine, bait, listeners, victim, chapters):
    """Check that an attack has touched nothing outside, and has left nothing."""
    engine.run(chapters["90"], {}, exercises=["90-double"])  # its worker runs from here on
    files = left_files()
    adopt_orphans()
    processes = descendants()

    def check(student_after: bool):
        assert left_files() == files
        assert {f.read_text() for f in bait.rglob("*") if f.is_file()} == {
            "the secret of the class"
        }
        assert select.select(listeners[1], [], [], 0)[0] == []
        assert victim.poll() is None
        assert remaining(processes) <= processes
        if not student_after:
            return
        honest = {"90-double": "def double(x):\n    return 2 * x"}
        verdicts = engine.run(chapters["90"], honest, exercises=["90-double"])
        assert sum(verdict.score for verdict in verdicts.values()) == 3, "the next student's marks"

    return check


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}: {case['name']}")
def test_an_attack_gets_what_it_deserves(engine, chapters, words, untouched, case, capfd):
    exercise = exercise_of(case)
    chapter = chapters[exercise[:2]]
    other = next(one for one in reversed(chapter.exercises) if one != exercise)
    honest = chapter.exercises[other].cell.solution_text
    answers = {exercise: answer_of(case, words), other: honest}
    verdicts = engine.run(chapter, answers, exercises=[exercise, other])
    own = [verdict for verdict in verdicts.values() if verdict.exercise == exercise]
    told = [verdict.message for verdict in own]
    assert sum(verdict.score for verdict in own) == case.get("points", 0), told
    if "state" in case:
        assert {verdict.state for verdict in own} <= set(case["state"]), told
    beside = [v for v in verdicts.values() if v.exercise == other]
    assert [v.message for v in beside if v.score != v.points] == [], "the other exercise's marks"
    said = "".join([*told, *capfd.readouterr()])
    for word in ("canary", LOOT, "a slip in the case", "the secret of the class"):
        assert word not in said
    assert all(verdict.rule != "setup" for verdict in own), "nothing of ours was broken"
    assert all(len(message) < 5000 for message in told)
    untouched(student_after=case["kind"] not in INSIDE)


# The tests above can fail


def test_what_an_attack_finds_would_be_seen(engine, chapters, words):
    for exercise in ("90-double", "91-twice"):
        case = {"loot": "found.append('gold')", "exercise": exercise}
        verdicts = engine.run(
            chapters[exercise[:2]], {exercise: answer_of(case, words)}, exercises=[exercise]
        )
        assert f"{LOOT}: ['gold']" in list(verdicts.values())[-1].message


def test_a_slip_in_an_attack_would_be_seen(engine, chapters, words):
    source = answer_of({"loot": "no_such_name"}, words)
    verdicts = engine.run(chapters["90"], {"90-double": source}, exercises=["90-double"])
    assert "a slip in the case" in list(verdicts.values())[-1].message


def test_an_answer_does_find_its_end_of_the_border(engine, chapters, words):
    source = "double = lambda x: 2 * x if peer.sock.fileno() > 0 and frame([]) else 0"
    case = {"prelude": "peer", "answer": source}
    verdicts = engine.run(
        chapters["90"], {"90-double": answer_of(case, words)}, exercises=["90-double"]
    )
    assert sum(verdict.score for verdict in verdicts.values()) == 3


def test_a_leftover_process_would_be_seen(untouched):
    before = descendants()
    daemon = "import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(60)"
    subprocess.run([sys.executable, "-c", daemon])
    assert descendants() == before + 1
    child = int(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()[-1])
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_every_case_has_a_name_of_its_own():
    names = [(case["kind"], case["name"]) for case in CASES]
    assert len(names) == len(set(names))
    assert len(names) >= 80

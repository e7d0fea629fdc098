"""Control groups: where one may be made, on trees made by hand, and one that is made for real."""

import os
from pathlib import Path

import pytest

from autograde.engine import cgroups
from autograde.engine.cgroups import Group, make, places

MEMORY, PIDS = 300 * 2**20, 20


@pytest.fixture
def old(tmp_path):
    """Version 1 as on a machine with both: the controllers apart, each with a path of its own."""
    for folder in ("memory/shell", "pids", "unified"):
        (tmp_path / folder).mkdir(parents=True)
    mounts = (
        f"tmpfs {tmp_path} tmpfs rw 0 0\n"
        f"cgroup {tmp_path}/memory cgroup rw,relatime,memory 0 0\n"
        f"cgroup {tmp_path}/pids cgroup rw,relatime,pids 0 0\n"
        f"cgroup2 {tmp_path}/unified cgroup2 rw,relatime 0 0\n"
    )
    return {"mounts": mounts, "own": "8:pids:/\n4:memory:/shell\n0::/\n"}


@pytest.fixture
def new(tmp_path):
    """Version 2: a service with a process in it, under a slice that limits its children."""
    for folder, offers in [("", "cpu memory pids"), ("slice", "memory pids"), ("slice/shell", "")]:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "cgroup.subtree_control").write_text(f"{offers}\n")
    mounts = f"cgroup2 {tmp_path} cgroup2 rw,nosuid,nodev 0 0\n"
    return {"mounts": mounts, "own": "0::/slice/shell\n"}


def test_version_1_makes_a_group_below_our_own(old, tmp_path):
    assert places(**old) == [(tmp_path / "memory/shell", tmp_path / "pids")]


def test_version_1_in_a_container_that_does_not_see_its_path(old, tmp_path):
    old["own"] = "4:memory:/docker/abc\n8:pids:/docker/abc\n"
    assert places(**old) == [(tmp_path / "memory", tmp_path / "pids")]


def test_version_1_with_both_controllers_in_one_place(tmp_path):
    mounts = f"cgroup {tmp_path} cgroup rw,memory,pids 0 0\n"
    assert places(mounts=mounts, own="2:memory,pids:/\n") == [(tmp_path,)]


def test_version_2_makes_a_group_beside_our_own_or_higher(new, tmp_path):
    assert places(**new) == [(tmp_path / "slice",), (tmp_path,)]


def test_version_2_never_leaves_the_tree(new, tmp_path):
    new["own"] = "0::/\n"
    assert places(**new) == [(tmp_path,)]


def test_nothing_is_found_where_nothing_is_mounted():
    assert places(mounts="proc /proc proc rw 0 0\n", own="0::/\n") == []
    assert make("x", MEMORY, PIDS, mounts="", own="") is None


def test_version_2_limits_are_written(tmp_path):
    folder = tmp_path / "plainformer-x"
    folder.mkdir()
    names = ("memory.max", "memory.swap.max", "memory.events", "pids.max", "cgroup.procs")
    for name in names:
        (folder / name).write_text("")
    (folder / "memory.events").write_text("low 0\nhigh 2\noom 3\noom_kill 1\noom_group_kill 7\n")
    group = Group((folder,))
    group.build(MEMORY, PIDS)
    written = {name: (folder / name).read_text() for name in names if name != "memory.events"}
    assert written == {
        "memory.max": "314572800",
        "memory.swap.max": "0",
        "pids.max": "20",
        "cgroup.procs": "0",  # by the child that tried
    }
    assert group.out_of_memory() == 1


def test_a_group_that_can_not_be_limited_is_none(new, tmp_path):
    """Folders of a plain file system have no files for limits."""
    assert make("x", MEMORY, PIDS, **new) is None
    assert list(tmp_path.rglob("plainformer-*")) == []


def test_groups_of_the_dead_are_swept_and_those_in_use_are_not(tmp_path):
    held, dead, young = (tmp_path / f"plainformer-{name}" for name in ("held", "dead", "young"))
    for folder in (held, dead, young):
        folder.mkdir()
    for folder in (held, dead):
        os.utime(folder, (1, 1))
    lock = cgroups._lock(held)
    cgroups._sweep(tmp_path)
    os.close(lock)
    assert sorted(tmp_path.iterdir()) == [held, young]


def test_a_real_group_holds_the_child_that_enters_it_and_is_removed():
    group = make(f"test-{os.getpid()}", MEMORY, PIDS)
    if group is None:
        pytest.skip("This machine lets us make no control group, so none can be tried.")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        group.enter()
        os.write(writing, Path("/proc/self/cgroup").read_bytes())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    said = os.read(reading, 4096).decode()
    os.close(reading)
    folders = group.folders
    group.close()
    assert said.count(folders[0].name) == len(folders)
    assert group.out_of_memory() == 0
    assert [folder for folder in folders if folder.exists()] == []

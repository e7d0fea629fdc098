"""Grading one class with stock nbgrader and with ours, in one run: ratios of time a submission.

Each grader is a process of its own, started from nothing, as a teacher would start it. Processor
time counts all its children. Then, for ours alone: one and two workers, and classes of growing
size, each submission different, so that nothing is remembered from one to the next.

Run `python benchmarks/grading.py`; `--quick` takes smaller classes. It takes minutes.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograde.build import student_notebook
from autograde.chapters import ROOT
from autograde.engine.libc import CHILD_SUBREAPER, prctl
from autograde.environment import BIN
from autograde.extract import extract
from autograde.intake import find_notebook, read_notebook
from autograde.nbgrader_config import nbgrader_config
from autograde.plan import ClassFolder
from autograde.record import prepare
from autograde.run import Engine
from autograde.source import load

SLUG = "02-attention"


@dataclass(frozen=True, slots=True)
class Cost:
    """What grading a class took: seconds on the clock, processor seconds, peak MiB of memory."""

    wall: float
    cpu: float
    peak: float


def make_class(root: Path, students: int) -> ClassFolder:
    """A class in which everybody has solved the chapter, each with a comment of their own."""
    folder, chapter = ClassFolder(root), load(SLUG)
    released = student_notebook(chapter)
    for number in range(students):
        for cell in released.cells:
            ident = cell.metadata.get("nbgrader", {}).get("grade_id")
            if ident in chapter.exercises:
                solved = chapter.exercises[ident].cell.solution_text
                cell.source = f"{solved}\n# by student {number} of {root.name}"
        home = folder.submission(f"student{number:03}", SLUG)
        home.mkdir(parents=True)
        nbformat.write(released, home / f"{SLUG}.ipynb")
    prepare(folder, chapter)
    return folder


def cost_of(words: list[str], folder: ClassFolder) -> Cost:
    """Run a grader in the class folder; raises when it fails."""
    env = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        grader = subprocess.Popen(command, cwd=folder.root, env=env, stdout=said, stderr=said)
        ended = dict(_wait_for_all())
        wall = time.perf_counter() - start
        grader.returncode, _ = ended[grader.pid]
        if grader.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(words)} failed:\n{said.read()[-2000:]}")
    used = [usage for _, usage in ended.values()]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    return Cost(wall, cpu, max(each.ru_maxrss for each in used) / 1024)


def _wait_for_all() -> Iterator[tuple[int, tuple[int, resource.struct_rusage]]]:
    """Every child until none is left, with its exit code and what it and its own children used.

    Orphans are among them: bubblewrap ends without waiting for its own child, whose time would
    otherwise count nowhere.
    """
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return
        yield pid, (os.waitstatus_to_exitcode(status), usage)


def ours(folder: ClassFolder, workers: int) -> Cost:
    words = ["-m", "autograde", "grade", SLUG, "--class-dir", str(folder.root)]
    return cost_of([*words, "--workers", str(workers)], folder)


def stock(folder: ClassFolder) -> Cost:
    (folder.root / "nbgrader_config.py").write_text(nbgrader_config(folder.root))
    cost_of(["-m", "nbgrader", "generate_assignment", SLUG, "--force"], folder)
    return cost_of(["-m", "nbgrader", "autograde", SLUG], folder)


def p95(folder: ClassFolder, students: int) -> float:
    """Seconds that one submission in twenty exceeds, from the file to its verdicts, worker warm."""
    chapter, seconds = load(SLUG), []
    with Engine() as engine:
        for number in range(students):
            start = time.perf_counter()
            path, _ = find_notebook(folder.submission(f"student{number:03}", SLUG), SLUG)
            found = extract(read_notebook(path), chapter)
            engine.run(chapter, found.answers, extra=found.extra)
            seconds.append(time.perf_counter() - start)
    return sorted(seconds[1:])[int(0.95 * (students - 2))]  # the first one starts the worker


def compare(scratch: Path, students: int) -> None:
    first = make_class(scratch / "stock", students)
    theirs = stock(first)
    mine = make_class(scratch / "ours", students)
    one = ours(mine, 1)
    print(f"{students} submissions of {SLUG}, one worker, in seconds a submission")
    print(f"{'':8} {'wall':>8} {'cpu':>8}")
    for name, cost in [("stock", theirs), ("ours", one)]:
        print(f"{name:8} {cost.wall / students:>8.3f} {cost.cpu / students:>8.3f}")
    print(f"{'ratio':8} {theirs.wall / one.wall:>8.1f} {theirs.cpu / one.cpu:>8.1f}")
    print(f"{p95(mine, students):.3f} s: one submission in twenty takes longer\n")


def scale(scratch: Path, sizes: list[int]) -> None:
    print(f"{'students':>8} {'workers':>8} {'per minute':>11} {'cpu s each':>11} {'peak MiB':>9}")
    for students in sizes:
        walls = {}
        for workers in (1, 2):
            folder = make_class(scratch / f"of-{students}-{workers}", students)
            cost = ours(folder, workers)
            walls[workers] = cost.wall
            rate, each = 60 * students / cost.wall, cost.cpu / students
            print(f"{students:>8} {workers:>8} {rate:>11.0f} {each:>11.3f} {cost.peak:>9.0f}")
            shutil.rmtree(folder.root)
        print(f"{'':8} two workers are {walls[1] / walls[2]:.2f} times as fast as one")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="4 and 8 submissions instead")
    quick = parser.parse_args().quick
    prctl(CHILD_SUBREAPER, 1)  # orphans become our children
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), 4 if quick else 20)
        scale(Path(folder), [8] if quick else [20, 100, 500])


if __name__ == "__main__":
    main()

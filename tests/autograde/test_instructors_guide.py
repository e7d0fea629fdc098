"""The instructor's guide, run as it is written, on a copy of the course."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograde.chapters import ROOT
from autograde.cli import COMMANDS, command_line

GUIDE = (ROOT / "pages" / "instructors-guide.md").read_text(encoding="utf-8")
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "_build", "class", "rehearsal", "__pycache__")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A checkout in which every block of commands that needs no network has been run."""
    course = shutil.copytree(ROOT, tmp_path_factory.mktemp("a fork") / "course", ignore=NOT_COPIED)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(course)}
    for block in re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE):
        done = subprocess.run(
            ["bash", "-euc", block], cwd=course, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return course


def test_every_step_runs_and_leaves_what_the_guide_says(ran):
    told = set(re.findall(r"`(rehearsal/[^`]+)`", GUIDE))
    assert len(told) >= 3
    assert [path for path in told if not (ran / path).exists()] == []
    assert {"totals.csv" in path.name for path in (ran / "rehearsal/export").iterdir()} == {
        True,
        False,
    }
    page = (ran / "rehearsal/feedback/me/00-warm-up/00-warm-up.html").read_text(encoding="utf-8")
    assert "not written yet" in page


def test_the_site_of_a_class_is_made_as_it_says():
    """That command takes a minute, so that only its option is looked up here."""
    (command,) = re.findall(r"^python (_ext/\S+) (--\S+)$", GUIDE, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, command[0], "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert command[1] in done.stdout


@pytest.mark.parametrize("page", ["instructors-guide", "grading"])
def test_every_command_on_the_page_can_be_called(page):
    text = (ROOT / "pages" / f"{page}.md").read_text(encoding="utf-8")
    lines = re.findall(r"^python -m autograde (.*)$", text, re.MULTILINE)
    lines += re.findall(rf"`((?:{'|'.join(COMMANDS)}) [^`]+)`", text)
    assert len(lines) >= 10
    for line in lines:
        command_line().parse_args(shlex.split(line))  # exits where it is called wrongly

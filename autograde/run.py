"""Run answers against the tests of a chapter: the seam behind which the engine can change.

`Engine.run` takes sources and returns verdicts; who forks, jails or judges is nobody else's
business.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograde.chapters import ROOT
from autograde.lint import forbidden
from autograde.source import Chapter, Exercise

PASS, FAIL, ERROR, TIMEOUT, KILLED = "pass", "fail", "error", "timeout", "killed"
NOT_WRITTEN = "not written"
SETUP = "setup"  # the worker's word: the rule broken where the chapter's own setup cell stops


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one cell may use."""

    cpu: int = 5  # seconds of processor time, from the start of the test
    wall: int = 15  # seconds on the clock
    memory: float = 2.0  # GiB above what the warm process has mapped
    timeouts: int = 3  # exercises of one submission that may hang; later ones are not tried


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one test cell."""

    test: str
    exercise: str
    points: float
    state: str
    message: str = ""
    rule: str | None = None
    mistake: str | None = None
    seconds: float = 0.0

    @property
    def score(self) -> float:
        return self.points if self.state == PASS else 0.0


class SetupFailed(ValueError):
    """The chapter's own setup cell does not run here, so no answer can be judged."""


class WorkerError(RuntimeError):
    """The grading worker did not start, or ended; the message says what to do."""


def need_setup(verdicts: Iterable[Verdict]) -> None:
    """Raise SetupFailed when these verdicts say nothing about an answer."""
    for verdict in verdicts:
        if verdict.rule == SETUP:
            raise SetupFailed(verdict.message)


class Engine:
    """A warm worker process; use it as a context manager, from one thread."""

    def __init__(self, limits: Limits | None = None):
        self.limits = limits or Limits()
        self._process: subprocess.Popen | None = None

    def __enter__(self):
        self._start()
        return self

    def __exit__(self, *_):
        self._stop()

    def run(
        self,
        chapter: Chapter,
        answers: Mapping[str, str],
        *,
        exercises: Sequence[str] | None = None,
        visible_only: bool = False,
        extra: Sequence[str] = (),
    ) -> dict[str, Verdict]:
        """Judge the answers (exercise id -> source of its cell); a missing one is the stub.

        `extra` are cells that the learner added, run before each answer and forgiven if broken.
        """
        chosen = list(chapter.exercises) if exercises is None else list(exercises)
        verdicts: dict[str, Verdict] = {}
        budget = self.limits.timeouts
        for exercise_id in chosen:
            exercise = chapter.exercises[exercise_id]
            answer = answers.get(exercise_id, exercise.cell.stub_text)
            found = self._judge(chapter, exercise, answer, visible_only, extra, budget)
            budget -= any(v.state == TIMEOUT for v in found)
            verdicts |= {verdict.test: verdict for verdict in found}
        return verdicts

    def _judge(self, chapter, exercise: Exercise, answer, visible_only, extra, budget):
        points = {test.id: float(test.header["points"]) for test in exercise.tests}
        used = forbidden(answer, exercise.forbid, extra)
        if used:
            text = f"the answer uses {', '.join(used)}, which this exercise asks you to do without"
            return [Verdict(t, exercise.id, p, FAIL, text, "forbidden") for t, p in points.items()]
        if budget <= 0:
            text = "not tried: too many exercises of this submission ran over their time"
            return [Verdict(t, exercise.id, p, TIMEOUT, text) for t, p in points.items()]
        tests = [
            {"id": test.id, "code": test.visible_text if visible_only else test.solution_text}
            for test in exercise.tests
        ]
        request = {
            "exercise": exercise.id,
            "setup": [cell.text for cell in chapter.setup],
            "extra": list(extra),
            "answer": answer,
            "tests": tests,
            "limits": {
                "cpu": self.limits.cpu,
                "wall": self.limits.wall,
                "memory": self.limits.memory,
            },
        }
        return [
            Verdict(exercise=exercise.id, points=points[found["test"]], **found)
            for found in self._ask(request)
        ]

    def _ask(self, request: dict) -> list[dict]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._start()
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError("the grading worker ended; run `python -m autograde doctor`")
        return json.loads(line)

    def _start(self) -> None:
        env = os.environ | {
            "OMP_NUM_THREADS": "1",  # a process with threads must not be forked
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "MPLBACKEND": "Agg",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "lib")]),
            "PYTHONHASHSEED": "0",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "autograde.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        if not self._process.stdout.readline():
            raise WorkerError(
                "the grading worker did not start: is torch installed in this environment? "
                "`python -m autograde doctor` tells"
            )

    def _stop(self) -> None:
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait(timeout=10)
            self._process.stdout.close()
            self._process = None

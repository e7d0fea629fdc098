"""The process that decides: it runs the tests, and an answer is to it a name across the border.

It hears from the driver, after it has been forked, what to judge, and tells it each verdict as it
falls. It is never in the jail, and no line of an answer runs in it.
"""

import json
import os
import signal
import socket
import time

from autograde.engine.border import BorderError, Gone, Peer
from autograde.engine.cells import CHECK, execute, fresh_space, remember, seed_everything
from autograde.engine.errors import part_of
from autograde.engine.handles import only_calls
from autograde.engine.trial import OUT_OF_MEMORY, trial, verdict

SETUP = "setup"  # the rule broken where the chapter's own setup cell stops
SLACK = 3.0  # seconds beyond the wall-clock limit before the judge itself calls it off


class Late(BaseException):
    """A test has not come back long after its limit. No `Exception`: no check may catch it."""


class JailGone(BaseException):
    """The init itself is gone, and all servers with it; the rest needs another jail."""


def _too_late(*_):
    raise Late


def main(driver: socket.socket, control: socket.socket, oom_count) -> None:
    """Judge one submission; `oom_count()` tells how often its memory limit has struck."""
    with driver.makefile("rw", encoding="utf-8") as stream:
        request = json.loads(stream.readline())
        signal.signal(signal.SIGALRM, _too_late)

        def tell(found: dict) -> None:
            stream.write(json.dumps(found) + "\n")
            stream.flush()

        ward = Ward(control, request, oom_count)
        budget = request["limits"]["timeouts"]
        for exercise in request["exercises"]:
            budget -= judge_exercise(ward, exercise, budget, tell)
            if ward.gone:
                return  # the driver asks for the rest again, in another jail
        tell({"end": True})


def judge_exercise(ward: "Ward", exercise: dict, budget: int, tell) -> bool:
    """Tell a verdict for each test; True when the exercise has run over its time.

    The tests share a server until one of them kills it; from then on each gets its own. After two
    that hang the others are not tried: they would most likely hang too.
    """
    left, hung, first = list(exercise["tests"]), 0, True
    if budget <= 0:
        text = "not tried: too many exercises of this submission ran over their time"
        tell_all(tell, left, "timeout", text)
        return False
    while left and not ward.gone:
        done = ward.judge(exercise, left if first else left[:1])
        for found in done:
            hung += found["state"] == "timeout"
            tell(found)
        left, first = left[len(done) :], False
        if hung >= 2 and left:
            text = "not tried: two checks of this exercise ran over their time"
            tell_all(tell, left, "timeout", text)
            break
    return hung > 0


def tell_all(tell, tests: list[dict], state: str, text: str, rule=None) -> None:
    for test in tests:
        tell(verdict(test["id"], state, text, rule))


class Ward:
    """The inmate as the judge sees it: servers that are asked for, used, and ended."""

    def __init__(self, control: socket.socket, request: dict, oom_count):
        self._control, self._request, self._oom_count = control, request, oom_count
        self._setup: dict | None = None
        self.gone = False

    def judge(self, exercise: dict, tests: list[dict]) -> list[dict]:
        """Verdicts for the tests, on one server; fewer than asked for when it dies."""
        found: list[dict] = []
        stage, ooms, ours, where = SETUP, self._oom_count(), None, "before"
        try:
            ours = self._serve()
            peer = Peer(ours, only_calls)
            self._watch(peer)
            work = {key: exercise[key] for key in ("answer", "extra", "forbid")}
            peer.tell("work", {**work, "exercise": exercise["id"], "setup": self._request["setup"]})
            said = peer.hear()
            if said[0] == "setup failed":
                return [_setup_failed(test, f"stopped with {said[1]}") for test in tests]
            stage = "answer"
            trouble = _believed_trouble(peer.hear())
            for test in tests:
                stage = test["id"]
                try:
                    found.append(self._test(peer, exercise, test, trouble))
                except BaseException as error:
                    where = part_of(error, f"<{CHECK}{stage}>", test["visible"])
                    raise
            return found
        except (Gone, BorderError, Late) as error:
            state, why = self._cause(error, ooms)
        except OSError:
            state, why = self._lost(ooms)
        except Exception as error:  # a reply to the judge's own questions that makes no sense
            state, why = "killed", f"answered what nobody asked ({type(error).__name__})"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            if ours is not None:
                ours.close()
            self._end()
        if stage == SETUP:
            return [_setup_failed(test, why) for test in tests]
        if stage == "answer":
            text = f"the answer itself {why}, before any test ran"
            return [verdict(test["id"], state, text) for test in tests]
        return [*found, verdict(stage, state, f"the call {why}", part=where)]

    def _test(self, peer: Peer, exercise: dict, test: dict, trouble) -> dict:
        self._watch(peer)
        peer.ask("seed", test["id"])
        if test["inside"]:
            return _believed(test, peer.ask("inside", [test["id"], test["code"]]))
        space = self._space(exercise)
        for name in peer.ask("names", exercise["names"]):
            if name in exercise["names"]:
                space[name] = peer.ask("name", name)
        seed_everything(self._request["secret"] + test["id"])
        return trial(test["id"], test["code"], space, trouble, test["visible"])

    def _space(self, exercise: dict) -> dict:
        """The names of the setup, and the answer's lines for messages to quote."""
        remember(exercise["answer"], exercise["id"])
        for number, code in enumerate(exercise["extra"]):
            remember(code, f"added cell {number + 1}")
        if self._setup is None:
            self._setup = fresh_space()
            for code in self._request["setup"]:
                execute(code, SETUP, self._setup, quoted=False)
        return dict(self._setup)

    def _cause(self, error: BaseException, ooms: int) -> tuple[str, str]:
        """The state, and how a server ended, in words that follow "the call"."""
        if isinstance(error, BorderError):
            return "killed", f"sent what no check can read ({error})"
        told = self._end()
        if self.gone:
            return self._lost(ooms)
        if told["why"] == "cpu":
            return "timeout", "ran over its limit of processor time (an endless loop?)"
        if self._oom_count() > ooms:
            return "out of memory", OUT_OF_MEMORY
        if told["why"] == "wall" or isinstance(error, Late) or told["status"] is None:
            return "timeout", "did not come back within the wall-clock limit"
        status = told["status"]
        if os.WIFSIGNALED(status):
            return "killed", f"was stopped by signal {signal.Signals(os.WTERMSIG(status)).name}"
        return "killed", f"ended the whole process (exit status {os.WEXITSTATUS(status)})"

    def _lost(self, ooms: int) -> tuple[str, str]:
        self.gone = True
        if self._oom_count() > ooms:
            return "out of memory", OUT_OF_MEMORY
        return "killed", "took down everything that ran with it"

    # Orders to the init behind the wall

    def _serve(self) -> socket.socket:
        self._told: dict | None = None
        ours, theirs = socket.socketpair()
        socket.send_fds(self._control, [_line({"do": "serve"})], [theirs.fileno()])
        theirs.close()
        return ours

    def _watch(self, peer: Peer) -> None:
        limits = self._request["limits"]
        self._control.sendall(_line({"do": "watch", "cpu": limits["cpu"], "wall": limits["wall"]}))
        peer.deadline = time.monotonic() + limits["wall"] + SLACK
        signal.setitimer(signal.ITIMER_REAL, limits["wall"] + 2 * SLACK)

    def _end(self) -> dict:
        """End the server and all it started: how it had ended before that."""
        if self._told is None:
            self._told = {"status": None, "why": None}
            try:
                self._control.sendall(_line({"do": "end"}))
                data = self._control.recv(4096)
                self._told = json.loads(data) if data else self._told
                self.gone |= not data
            except OSError:
                self.gone = True
        return self._told


def _line(order: dict) -> bytes:
    return json.dumps(order).encode() + b"\n"


def _setup_failed(test: dict, why: str) -> dict:
    text = f"the chapter's own setup cell {why}; run `python -m autograde doctor`"
    return verdict(test["id"], "error", text, SETUP)


def _believed_trouble(said):
    """What stopped the answer's own cell, if it is told in our form."""
    match said:
        case ("ready", [str(words), bool(unwritten), bool(memory)]):
            return words, unwritten, memory
    return None


def _believed(test: dict, told) -> dict:
    """A verdict from inside the jail, for the rare test that is judged there."""
    ident, part = test["id"], "visible" if test["visible"] is None else "hidden"
    match told:
        case {"state": str(state), "message": str(message)}:
            rule, mistake = (
                one if isinstance(one, str) else None
                for one in (told.get("rule"), told.get("mistake"))
            )
            return verdict(ident, state, message, rule, mistake, part=part)
    return verdict(ident, "error", "the check inside the answer's process gave no verdict")

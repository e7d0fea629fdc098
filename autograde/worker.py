"""The warm process that runs answers: it imports torch once and forks a child for each exercise.

Spoken to by `autograde.run.Engine` with one JSON line a request on standard input and one a reply
on standard output. The child reports each stage as it ends, so that the parent knows which cell
was running when a child had to be killed. This first version shares one process between an answer
and its tests: it survives accidents, and is no wall against an attacker.
"""

import contextlib
import gc
import hashlib
import json
import linecache
import os
import random
import resource
import select
import signal
import sys
import tempfile
import time
import traceback

LONGEST_MESSAGE = 4000  # characters of a report; a megabyte in a message helps nobody
GIB = 2**30
CHECK = "check "  # before a test's id, in the name of its pretended file
SETUP = "setup"  # `autograde.run.SETUP`, without importing all that a driver needs


def serve() -> None:
    """Answer requests until standard input closes."""
    replies = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(silence, descriptor)
    import numpy  # noqa: F401  (imported before the fork, so that children share the pages)
    import torch

    import plainformer.check  # noqa: F401

    torch.set_num_threads(1)
    torch.testing.assert_close(torch.ones(1), torch.ones(1))  # its first call is slow
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page
    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(judge(json.loads(line))), file=replies, flush=True)


def judge(request: dict) -> list[dict]:
    """One verdict for each test of one exercise.

    The tests share a child until one of them kills it; from then on each gets a child of its own.
    After two that hang the others are not tried: they would most likely hang too.
    """
    verdicts, left = [], list(request["tests"])
    while left:
        done = _run_child({**request, "tests": left if not verdicts else left[:1]})
        verdicts += done
        left = left[len(done) :]
        if sum(verdict["state"] == "timeout" for verdict in verdicts) >= 2:
            text = "not tried: two checks of this exercise ran over their time"
            verdicts += [_verdict(test["id"], "timeout", text) for test in left]
            break
    return verdicts


def _run_child(request: dict) -> list[dict]:
    """Fork, listen until all tests have reported or one of them hangs or dies."""
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.close(readable)
        try:
            _live(request, writable)
        finally:  # whatever happens, a child must never go on as a second worker
            os._exit(1)
    os.close(writable)
    verdicts, running, timed_out = [], SETUP, False
    for report in _reports(readable, request["limits"]["wall"]):
        if report is None:
            timed_out = True
        elif "running" in report:
            running = report["running"]
        else:
            verdicts.append(report)
        if len(verdicts) == len(request["tests"]):
            break
    os.close(readable)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if len(verdicts) == len(request["tests"]):
        return verdicts
    state, why = _cause_of_death(status, timed_out)
    if running == SETUP:
        return [_setup_failed(test["id"], why) for test in request["tests"]]
    if running == "answer":
        text = f"the answer itself {why}, before any test ran"
        return [_verdict(test["id"], state, text) for test in request["tests"]]
    return [*verdicts, _verdict(running, state, f"the call {why}")]


def _reports(readable: int, wall: float):
    """The child's reports as they come; None when it is silent for longer than `wall` seconds."""
    buffer = b""
    while True:
        if not select.select([readable], [], [], wall)[0]:
            yield None
            return
        chunk = os.read(readable, 65536)
        if not chunk:
            return
        *lines, buffer = (buffer + chunk).split(b"\n")
        yield from map(json.loads, lines)


def _cause_of_death(status: int, timed_out: bool) -> tuple[str, str]:
    if timed_out:
        return "timeout", "did not come back within the wall-clock limit"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return "timeout", "ran over its limit of processor time (an endless loop?)"
    if os.WIFSIGNALED(status):
        return "killed", f"was stopped by signal {signal.Signals(os.WTERMSIG(status)).name}"
    return "killed", f"ended the whole process (exit status {os.WEXITSTATUS(status)})"


def _live(request: dict, writable: int) -> None:
    """The child: run setup, answer and tests, report, and never return."""
    os.setsid()

    def report(message: dict) -> None:
        os.write(writable, (json.dumps(message) + "\n").encode())

    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        os.environ["HOME"] = home
        limits = request["limits"]
        _limit_memory(limits["memory"])
        space = {"__name__": "__main__", "__builtins__": __builtins__, "get_ipython": _Silent}
        _allow(limits["cpu"])
        trouble = None
        report({"running": SETUP})
        try:
            for code in request["setup"]:
                _execute(code, SETUP, space)
        except BaseException as error:  # no fault of the answer: nothing is judged
            said = " ".join(f"{type(error).__name__}: {error}".split())
            for test in request["tests"]:
                report(_setup_failed(test["id"], f"stopped with {said}"))
            os._exit(0)
        report({"running": "answer"})
        for number, code in enumerate(request["extra"]):
            with contextlib.suppress(BaseException):  # a scratch cell may well be broken
                _execute(code, f"added cell {number + 1}", space)
        try:
            _execute(request["answer"], request["exercise"], space)
        except BaseException as error:
            trouble = error
        for test in request["tests"]:
            report({"running": test["id"]})
            _allow(limits["cpu"])
            report(_judge_test(test, space, trouble))
    os._exit(0)


def _judge_test(test: dict, space: dict, trouble: BaseException | None) -> dict:
    from plainformer.check import CheckFailed

    _seed(test["id"])
    start = time.perf_counter()
    state, text, rule, mistake = "pass", "", None, None
    try:
        _execute(test["code"], f"{CHECK}{test['id']}", space)
    except CheckFailed as error:
        state, text, rule, mistake = "fail", str(error), error.rule, error.mistake
        if rule == "not-written":
            state = "not written"
    except NotImplementedError:
        state, text = "not written", "this is not written yet"
    except AssertionError as error:
        state, text = "fail", str(error) or "an assertion of the test does not hold"
    except BaseException as error:
        state, text = "error", _in_words(error)
    if state == "error" and trouble is not None:
        unwritten = isinstance(trouble, NotImplementedError)
        state = "not written" if unwritten else "error"
        text = f"the answer's own cell stopped with {_in_words(trouble)}"
    seconds = time.perf_counter() - start
    return {**_verdict(test["id"], state, text, rule, mistake), "seconds": seconds}


def _setup_failed(test: str, why: str) -> dict:
    text = f"the chapter's own setup cell {why}; run `python -m autograde doctor`"
    return _verdict(test, "error", text, SETUP)


def _verdict(test: str, state: str, text: str = "", rule=None, mistake=None) -> dict:
    message = text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " ..."
    verdict = {"test": test, "state": state, "message": message, "rule": rule, "mistake": mistake}
    return {**verdict, "seconds": 0.0}


def _execute(code: str, name: str, space: dict) -> None:
    """Run one cell; its lines are known to `linecache`, so that messages can quote them."""
    file = f"<{name}>"
    try:
        compiled = compile(code, file, "exec")
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        code = TransformerManager().transform_cell(code)  # magics: %, !, trailing ?
        compiled = compile(code, file, "exec")
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compiled, space)


class _SilentShell:
    """Stands in for IPython's shell in a learner's magics: accepts every call, does nothing."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def _Silent() -> _SilentShell:
    return _SilentShell()


def _in_words(error: BaseException) -> str:
    """The error and the learner's line behind it; never a line of a test, which may be hidden."""
    text = f"{type(error).__name__}: {error}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<") and not frame.filename.startswith(f"<{CHECK}")
    ]
    if frames:
        text += f"\n  in line {frames[-1].lineno} of {frames[-1].filename}: {frames[-1].line}"
    return text


def _seed(test_id: str) -> None:
    """The same random numbers in every run of a test, others in another test."""
    import numpy
    import torch

    seed = int(hashlib.sha256(test_id.encode()).hexdigest()[:8], 16)
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


def _allow(cpu_seconds: int) -> None:
    """Move the processor-time limit to that many seconds from now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + 1) + cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _limit_memory(gib: float) -> None:
    try:
        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux: there the limit would not be kept either
        return
    most = int(mapped + gib * GIB)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    serve()

"""One test cell against the names it needs: what came of it, in words for the learner."""

import time
from functools import partial

from autograde.engine.cells import CHECK, execute, in_words, text_of
from autograde.engine.errors import part_of
from plainformer.check import CheckFailed

LONGEST_MESSAGE = 4000  # characters of a report; a megabyte in a message helps nobody
OUT_OF_MEMORY = "needed more memory than a check may use"


def verdict(
    test: str, state: str, message: str = "", rule=None, mistake=None, *, part="before"
) -> dict:
    """What is said of one test; `part` is where it stood (`part_of`), None where it passed."""
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + " ..."
    found = {"test": test, "state": state, "message": message, "rule": rule, "mistake": mistake}
    return {**found, "seconds": 0.0, "part": part}


def trial(test: str, code: str, space: dict, trouble=None, visible: int | None = None) -> dict:
    """Run a test cell, of which students can read `visible` lines, or all.

    `trouble` is what stopped the answer's own cell: words, written?, memory?
    """
    start = time.perf_counter()
    try:
        execute(code, f"{CHECK}{test}", space, quoted=False)
        found = verdict(test, "pass", part=None)
    except Exception as error:
        found = _failed(test, error, trouble, part_of(error, f"<{CHECK}{test}>", visible))
    return {**found, "seconds": time.perf_counter() - start}


def _failed(test: str, error: Exception, trouble, part: str) -> dict:
    said = partial(verdict, test, part=part)
    if is_memory(error) or is_memory(error.__cause__):
        return said("out of memory", f"the call {OUT_OF_MEMORY}\n  {in_words(error)}")
    if isinstance(error, CheckFailed):
        state = "not written" if error.rule == "not-written" else "fail"
        return said(state, str(error), error.rule, error.mistake)
    if isinstance(error, NotImplementedError):
        return said("not written", "this is not written yet")
    if isinstance(error, AssertionError):
        return said("fail", text_of(error) or "an assertion of the test does not hold")
    if trouble is None:
        return said("error", in_words(error))
    words, unwritten, memory = trouble
    state = "not written" if unwritten else "out of memory" if memory else "error"
    return verdict(test, state, f"the answer's own cell stopped with {words}")


def is_memory(error: BaseException | None) -> bool:
    """Whether an error says that there was no memory left; torch has no type for it."""
    return isinstance(error, MemoryError) or "can't allocate memory" in text_of(error)

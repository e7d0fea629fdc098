"""Judge submissions on several engines at once: one thread drives each, results come as they come.

An engine is a process of its own, so its thread mostly waits. What a thread does itself (reading a
notebook, finding the answers) touches nothing that is shared; only the caller writes.
"""

import contextlib
import datetime
import queue
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from autograde.extract import Extracted, extract
from autograde.intake import Unreadable, find_notebook, read_notebook
from autograde.plan import ClassFolder, sent_part
from autograde.record import submitted_at
from autograde.run import Engine, NowhereToRun, SetupFailed, Verdict, need_setup
from autograde.secret import seed_for
from autograde.source import Chapter

AHEAD = 2  # results a worker may be ahead of the writer: memory stays flat in a class of any size


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one submission: verdicts, or the reason why there are none."""

    student: str
    digest: str
    file: str = ""
    submitted: datetime.datetime | None = None
    found: Extracted = field(default_factory=Extracted)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    reason: str | None = None
    ours: bool = False  # the grader itself failed, not the submission

    def as_record(self, slug: str) -> dict:
        """The line of records/: everything that tables and pages say about this submission."""
        head = {"student": self.student, "chapter": slug, "digest": self.digest}
        if self.reason is not None:
            return {**head, "graded": False, "reason": self.reason}
        return {
            **head,
            "graded": True,
            "reason": None,
            "file": self.file,
            "submitted": self.submitted.isoformat(timespec="seconds"),
            "notes": self.found.notes,
            "written": sorted(self.found.written),
            "tests": [_as_dict(verdict) for verdict in self.verdicts.values()],
        }


def _as_dict(verdict: Verdict) -> dict:
    """dataclasses.asdict copies deeply, which a verdict of plain values does not need."""
    return {name: getattr(verdict, name) for name in Verdict.__slots__}


def judge(
    folder: ClassFolder,
    chapter: Chapter,
    student: str,
    digest: str,
    run: Callable,
    exercises: Sequence[str] | None = None,
) -> Judged:
    """Read one submission and judge its answers, or those to `exercises`.

    Whatever goes wrong with it is in what it returns; raises NowhereToRun alone.
    """
    try:
        path, notes = find_notebook(folder.submission(student, chapter.slug), chapter.slug)
        sent = read_notebook(path)
        submitted, more = submitted_at(path)
        sent.notes[:0] = [*notes, *more]
        found = extract(sent, chapter)
        seed = seed_for(folder, sent_part(digest))
        verdicts = run(chapter, found.answers, extra=found.extra, exercises=exercises, seed=seed)
        need_setup(verdicts.values())
        return Judged(student, digest, path.name, submitted, found, verdicts)
    except NowhereToRun:
        raise
    except (Unreadable, SetupFailed) as error:
        return Judged(student, digest, reason=str(error))
    except Exception as error:  # the class goes on, and the teacher is told which one to look at
        return Judged(student, digest, reason=grader_failed(error), ours=True)


def grader_failed(error: Exception) -> str:
    """The reason of a submission over which the grader broke, and no other."""
    return (
        f"the grader itself failed: {type(error).__name__}: {error}; grade it by hand, "
        "or send us the notebook"
    )


@contextlib.contextmanager
def judge_all(
    jobs: Iterable,
    work: Callable[[object, Callable], Judged],
    *,
    engine: Callable[[], Engine],
    workers: int,
    stop: threading.Event,
) -> Iterator[Iterator[Judged]]:
    """Iterate over `work(job, run)` of every job, in the order in which they are done.

    After `stop` is set no further job is begun; those under way still come out. Raises
    NowhereToRun when an engine did.
    """
    waiting, turn = iter(jobs), threading.Lock()
    room, done = threading.Semaphore(AHEAD * workers), queue.SimpleQueue()

    def take():
        room.acquire()
        with turn:
            return None if stop.is_set() else next(waiting, None)

    def drive():
        try:
            _leave_ctrl_c_to_the_main_thread()
            with contextlib.ExitStack() as stack:
                running = Restartable(engine, stack)
                while (job := take()) is not None:
                    done.put(work(job, running.run))
        except NowhereToRun as error:
            done.put(error)
        finally:
            done.put(None)

    for _ in range(workers):
        threading.Thread(target=drive, daemon=True).start()

    def results():
        at_work = workers
        while at_work:
            judged = done.get()
            room.release()
            if isinstance(judged, NowhereToRun):
                raise judged
            if judged is None:
                at_work -= 1
            else:
                yield judged

    try:
        yield results()
    except BaseException:  # the caller gave up: nobody begins another job
        stop.set()
        room.release(workers)
        raise


def _leave_ctrl_c_to_the_main_thread() -> None:
    """Engines inherit the mask: Ctrl-C reaches a whole terminal, and must not end their work."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


class Restartable:
    """The engine, started when first needed, and anew after it has failed."""

    def __init__(self, make: Callable[[], Engine], stack: contextlib.ExitStack):
        self._make, self._stack, self._engine = make, stack, None

    def run(self, chapter: Chapter, answers: dict[str, str], **options) -> dict[str, Verdict]:
        if self._engine is None:
            self._engine = self._stack.enter_context(self._make())
        try:
            return self._engine.run(chapter, answers, **options)
        except Exception:
            self._engine = None
            with contextlib.suppress(Exception):  # it has failed already; stop it if it still runs
                self._stack.close()
            raise

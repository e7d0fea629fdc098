"""Run the notebooks of the book side by side and keep their outputs in a jupyter-cache.

Jupyter-cache knows only the code cells of a notebook. A change in the library would therefore
leave yesterday's figures on the page, so the cache's folder is named after everything else that an
output depends on: the library, the lock file, the version of Python.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

CELL_SECONDS = 300
CACHES_KEPT = 3  # other clones share the folder; a few hundred kilobytes each


@dataclass(frozen=True)
class Run:
    """What became of one notebook."""

    path: str
    seconds: float
    cached: bool = False
    failure: str = ""  # the cell and traceback, empty when all went well


def execution_key(root: Path) -> str:
    """A name for all that outputs depend on besides the notebook's own code."""
    files = [path for path in (root / "lib").rglob("*") if path.is_file()]
    files = [path for path in files if path.suffix not in (".pyc",) and "egg-info" not in str(path)]
    lock = root / "requirements.lock"
    return digest([*files, lock], root, platform.python_version())[:16]


def digest(files: Iterable[Path], root: Path, *words: str) -> str:
    """One hash over the names and contents of files; a missing file counts as such."""
    total = hashlib.sha256("\0".join(words).encode())
    for path in sorted(files):
        content = path.read_bytes() if path.is_file() else b"missing"
        total.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def execution_cache(root: Path) -> Path:
    """The cache's folder for the library as it is now; folders of older libraries are removed."""
    home = Path(os.environ.get("PLAINFORMER_CACHE") or Path.home() / ".cache" / "plainformer")
    folder = home.expanduser().resolve() / "execute" / execution_key(root)
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    prune(folder.parent, CACHES_KEPT)
    return folder


def prune(folder: Path, keep: int) -> list[Path]:
    """Delete all but the `keep` most recently used folders; return what went."""
    by_age = sorted((p for p in folder.iterdir() if p.is_dir()), key=lambda p: -p.stat().st_mtime)
    for old in by_age[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    return by_age[keep:]


def run_all(notebooks: list[Path], cache: Path, library: Path, report=print) -> list[Run]:
    """Run what the cache does not have, as many at a time as there are cores."""
    from jupyter_cache import get_cache

    store = get_cache(cache)
    cached = [path for path in notebooks if _is_cached(store, path)]
    todo = [path for path in notebooks if path not in cached]
    runs = [Run(str(path), 0.0, cached=True) for path in cached]
    if not todo:
        return runs
    workers = min(len(todo), os.cpu_count() or 1)
    report(f"  running {len(todo)} of {len(notebooks)} notebooks, {workers} at a time")
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(_run_apart, path, cache, library) for path in todo]
        for done, future in enumerate(as_completed(waiting), start=1):
            run = future.result()
            word = "FAILED" if run.failure else "ran"
            report(f"  [{done}/{len(todo)}] {word} {Path(run.path).stem} in {run.seconds:.0f} s")
            runs.append(run)
    return runs


def _is_cached(store, path: Path) -> bool:
    import nbformat

    try:
        store.match_cache_notebook(nbformat.read(path, as_version=4))
    except KeyError:
        return False
    return True


def _run_apart(path: Path, cache: Path, library: Path) -> Run:
    """Run one notebook in a process of its own, whose surroundings are set before it starts."""
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    # Kernels run side by side: one thread each. Figures need the notebook's own backend.
    environment.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTHONHASHSEED="0")
    environment["PYTHONPATH"] = str(library)
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, __file__, str(path), str(cache)],
        env=environment,
        capture_output=True,
        text=True,
    )
    failure = done.stdout.strip("\n")
    if done.returncode and not failure:
        failure = "\n".join(f"    {line}" for line in plain(done.stderr).splitlines()[-15:])
    return Run(str(path), time.monotonic() - start, failure=failure)


def run_one(path: Path, cache: Path) -> str:
    """Run one notebook and put it into the cache; return what failed, or nothing."""
    import nbformat
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn
    from jupyter_cache.executors.utils import single_nb_execution

    notebook = nbformat.read(path, as_version=4)
    result = single_nb_execution(
        notebook,
        cwd=str(path.parent),
        timeout=CELL_SECONDS,
        allow_errors=False,
        extra_arguments=["--log-level=40"],  # not: "Kernel is running over TCP ..."
    )
    if result.err is not None:
        return _failure(notebook, str(result.err))
    bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": result.time})
    get_cache(cache).cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return ""


def _failure(notebook, error: str) -> str:
    """The cell that failed and the end of its traceback, without colours."""
    for index, cell in enumerate(notebook.cells):
        outputs = cell.get("outputs", [])
        broken = next((out for out in outputs if out.output_type == "error"), None)
        if broken and "raises-exception" not in cell.metadata.get("tags", []):
            source = "\n".join(f"    {line}" for line in cell.source.splitlines()[:12])
            lines = plain("\n".join(broken.traceback)).splitlines()[-15:]
            return f"cell {index}:\n{source}\n\n" + "\n".join(f"    {line}" for line in lines)
    return "\n".join(f"    {line}" for line in plain(error).splitlines()[-15:])


def plain(text: str) -> str:
    """The text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


if __name__ == "__main__":
    print(run_one(Path(sys.argv[1]), Path(sys.argv[2])))

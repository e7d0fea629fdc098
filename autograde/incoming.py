"""Take downloads of the class apart: class/incoming/*.zip into submitted/STUDENT/CHAPTER/.

Only notebooks are taken out, to places that we choose, so no archive can write anywhere else. What
is handed in again replaces what was there, which moves to `earlier/` beside it; the archives stay
as they are. `records/incoming.json` knows what was done, so nothing is done twice.
"""

import hashlib
import io
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from autograde import archive
from autograde.chapters import Course, UnknownChapter
from autograde.downloads import Handed, apart, handed
from autograde.ids import usable
from autograde.intake import EARLIER, NOTED, Unreadable, chapter_of, unzipped
from autograde.lock import alone
from autograde.notebook import parse_notebook
from autograde.plan import ClassFolder, write

LARGEST = 8 * 2**30  # bytes of one archive
MOST_BYTES = 32 * 2**30  # of all that is unpacked from one
SENT = (".ipynb", ".zip")
BY_HAND = "put it in submitted/STUDENT/CHAPTER/ by hand"
NOT_YET = (None, "", "is not unpacked yet; run `python -m autograde grade`")
NO_ZIP = (None, "", "is no zip file; put the download of the class here as it came")


class NotTaken(ValueError):
    """One file of a download that is in nobody's folder: what is wrong; what to do."""


def unpack(folder: ClassFolder, course: Course) -> list[str]:
    """Take in what lies in incoming/ and was not yet; what was done, in lines for the teacher.

    What could not be taken in is listed by `left_over`, and tried again each time.
    """
    lines: list[str] = []
    if not any(is_archive for _, is_archive in _lying(folder)):
        return lines
    with alone(folder):
        known = _read(folder)
        for path in (path for path, is_archive in _lying(folder) if is_archive):
            digest = _digest_of(path)
            before = known["archives"].get(digest)
            if before is None or before["problems"]:
                try:
                    problems = _Taking(folder, course, known, path, lines).all()
                    known["archives"][digest] = {"file": path.name, "problems": problems}
                finally:  # whatever stops it: what was taken in is known
                    _write(folder, known)
    return lines


def left_over(folder: ClassFolder) -> dict[Path, list[tuple[str | None, str, str]]]:
    """What lies in incoming/ -> (student, file, what is wrong) of all that was not taken in."""
    lying = _lying(folder)
    archives = _read(folder)["archives"] if lying else {}
    found = {}
    for path, is_archive in lying:
        if not is_archive:
            found[path] = [NO_ZIP]
        elif (known := archives.get(_digest_of(path))) is None:
            found[path] = [NOT_YET]
        else:
            found[path] = [tuple(problem) for problem in known["problems"]]
    return found


class _Taking:
    """One archive, on its way into the folders of students."""

    def __init__(self, folder, course, known, path, lines):
        self.folder, self.course, self.known = folder, course, known
        self.path, self.lines = path, lines
        self.slugs = tuple(course.slugs())
        self.read = 0  # bytes unpacked until now
        self.problems: list[tuple[str | None, str, str]] = []

    def all(self) -> list[tuple[str | None, str, str]]:
        """Take everything in; what could not be is returned."""
        try:
            if self.path.stat().st_size > LARGEST:
                raise archive.BadArchive(f"it has more than {LARGEST >> 30} GiB")
            with archive.opened(self.path, self.path.name) as opened:
                self._take(opened)
        except archive.BadArchive as error:
            self.problems.append((None, "", f"cannot be read: {error}; download it again"))
        return self.problems

    def _take(self, opened) -> None:
        members, refused = archive.members(opened)
        self.problems += [(None, what, "ask who packed it") for what in refused]
        these = {member: handed(member, self.slugs) for member in members}
        for member, one in these.items():
            if one is None and _is_sent(member.name):
                self.problems.append(
                    (
                        None,
                        str(member),
                        "does not say whose it is; put it in "
                        "submitted/STUDENT/CHAPTER/ and take it out of the archive",
                    )
                )
        ours = sorted(apart([one for one in these.values() if one]), key=lambda one: one.order)
        self._miss_those_without_notebook(ours)
        taken = Counter()
        for one in ours:
            if _is_sent(one.member.name):
                student = self._student(one)
                try:
                    if slug := self._place(opened, one, student):
                        taken[slug] += 1
                except NotTaken as error:
                    self.problems.append((student, str(one.member), str(error)))
        done = [f"{count} of {slug}" for slug, count in sorted(taken.items())]
        self.lines.append(f"incoming/{self.path.name}: taken in {', '.join(done) or 'nothing new'}")

    def _miss_those_without_notebook(self, ours: list[Handed]) -> None:
        sent = {one.name for one in ours if _is_sent(one.member.name)}
        for name in sorted({one.name for one in ours if one.number} - sent):
            files = ", ".join(one.file for one in ours if one.name == name)
            why = f"sent no notebook, only {files}; ask for it"
            self.problems.append((usable(name, self.slugs), name, why))

    def _student(self, one: Handed) -> str:
        """The id; two of one name that Canvas tells apart never share a folder."""
        student = usable(one.name, self.slugs)
        if one.order[0]:
            number = self.known["students"].setdefault(student, one.number)
            if number != one.number:
                return usable(f"{one.name}_{one.number}", self.slugs)
        return student

    def _place(self, opened, one: Handed, student: str) -> str | None:
        """Put one notebook where it is graded, or beside that; its chapter, unless it is known.

        Platforms date the files of a download anew, so bytes that are there keep their first time,
        and what a teacher has put there by hand gives way to new work alone.
        """
        data, notes = self._notebook(opened, one)
        slug = self._chapter(data, one)
        digest = hashlib.sha256(data).hexdigest()
        here = self.known["submissions"].setdefault(slug, {}).setdefault(student, {})
        order = list(one.order)
        if here.get(digest, []) >= order:
            return None
        home = self.folder.submission(student, slug)
        if self._is_there(home / f"{slug}.ipynb", digest, here):
            here[digest] = order
            return None
        for path in (home.parent, home, home / EARLIER, home / f"{slug}.ipynb"):
            if path.is_symlink():
                raise NotTaken(f"{path} is a link, and links are not followed; take it away")
        newest, seen = order >= max(here.values(), default=[]), digest in here
        here[digest] = order
        if not newest and seen:
            return None
        if not newest:
            _write_bytes(home / EARLIER / f"{digest[:16]}.ipynb", data)
            return slug
        if _set_aside(home, slug, digest):
            notes.append("it replaces one that was sent before, which lies in earlier/")
        notes += ["it is marked LATE in the download; only noted"] if one.late else []
        notes += [f"{student} stands for {one.name!r}"] if student != one.name else []
        self.lines += [f"{student}, {slug}: {note}" for note in notes]
        _write_bytes(home / NOTED, "".join(f"{note}\n" for note in notes).encode())
        _write_bytes(home / f"{slug}.ipynb", data, one.member.info.date_time)
        return slug

    def _is_there(self, path: Path, digest: str, here: dict) -> bool:
        """These bytes are to be graded, or were until somebody put others in their place."""
        if path.is_symlink() or not path.is_file():
            return False
        there = _digest_of(path)
        return there == digest or (digest in here and there not in here)

    def _notebook(self, opened, one: Handed) -> tuple[bytes, list[str]]:
        try:
            data = archive.content(opened, one.member)
            self.read += len(data)
            if self.read > MOST_BYTES:
                raise archive.BadArchive(f"there is more than {MOST_BYTES >> 30} GiB before it")
            if one.file.lower().endswith(".zip"):
                return unzipped(io.BytesIO(data), one.file, Path(one.file).stem)
        except (archive.BadArchive, Unreadable) as error:
            raise NotTaken(f"{error}; ask for it again") from None
        return data, []

    def _chapter(self, data: bytes, one: Handed) -> str:
        """By its cells and its name; what cannot be read goes by names, and the grader says why."""
        try:
            sent = parse_notebook(data, Path(one.file))
            if any(cell.grade_id for cell in sent.cells):
                return chapter_of(sent, self.course)
            reason = f"{one.file} is of no chapter that is known here: neither its cells nor its "
            reason += "name say which"
        except (Unreadable, UnknownChapter) as error:
            if isinstance(error, UnknownChapter):
                raise NotTaken(f"{error}; {BY_HAND}") from None
            reason = str(error)
        by_name = self.course.guess(one.file) or self.course.guess(self.path.name)
        if by_name is None:
            raise NotTaken(f"{reason}; {BY_HAND}")
        return by_name


def _lying(folder: ClassFolder) -> list[tuple[Path, bool]]:
    """What lies in incoming/, and whether it is a zip that may be read."""
    home = folder.root / "incoming"
    if not home.is_dir() or home.is_symlink():
        return []
    shown = sorted(path for path in home.iterdir() if not path.name.startswith("."))
    return [
        (path, path.is_file() and not path.is_symlink() and path.suffix.lower() == ".zip")
        for path in shown
    ]


def _is_sent(name: str) -> bool:
    return name.lower().endswith(SENT)


def _set_aside(home: Path, slug: str, digest: str) -> bool:
    """Move what was to be graded until now into earlier/; True when there was something else."""
    old = home / f"{slug}.ipynb"
    if not old.is_file() or (before := _digest_of(old)) == digest:
        return False
    (home / EARLIER).mkdir(exist_ok=True)
    os.replace(old, home / EARLIER / f"{before[:16]}.ipynb")
    if (stamp := home / "timestamp.txt").is_file():
        os.replace(stamp, home / EARLIER / f"{before[:16]}.timestamp.txt")
    return True


def _write_bytes(path: Path, data: bytes, when: tuple[int, ...] | None = None) -> None:
    """All at once or not at all; `when` is the time in the archive, if that can be true."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.chmod(scratch, 0o644)
    if when is not None and when[0] > 1980:  # a zip without times says 1980
        moment = time.mktime((*when, 0, 0, -1))
        if moment < time.time():
            os.utime(scratch, (moment, moment))
    os.replace(scratch, path)


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(folder: ClassFolder) -> dict:
    try:
        known = json.loads((folder.root / "records" / "incoming.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    return {key: known.get(key, {}) for key in ("archives", "submissions", "students")}


def _write(folder: ClassFolder, known: dict) -> None:
    text = json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    write(folder.root / "records" / "incoming.json", text)

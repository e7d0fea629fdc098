"""The rules of a class, from `course.toml` in its folder; without the file there are none.

    time_zone = "Europe/Berlin"          # default UTC
    tiers = ["core", "more"]             # whose points count; default all three
    overlay = "../own-tests"             # hidden tests of this class, seen from its folder
    gradebook = "postgresql://ada@db.example.org/marks"    # default gradebook.db beside this file
    book = "https://example.org/course"  # where the class reads the book; feedback links to it
    [limits]                             # of one test: cpu and wall in seconds, memory in GiB
    cpu = 10
    [late]
    slip_days = 4                        # for each student, over the whole course
    cost_per_day = 0.1
    cap = 0.5
    [late.hard_end]
    02 = 2026-10-31                      # a date alone means the end of that day
    [deadlines]
    02 = 2026-10-12T18:00:00
    [extensions.ada]
    02 = 3                               # days, or a new deadline

Whatever is unknown or does not fit is an error, because a rule that is passed over in silence
costs somebody points.
"""

import datetime
import re
import tomllib
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

from autograde.chapters import Course, UnknownChapter, UsageError
from autograde.lateness import Dates, Policy
from autograde.plan import ClassFolder
from autograde.run import Limits
from autograde.source import TIERS, Chapter

NAME = "course.toml"
KNOWN = (
    "time_zone", "tiers", "overlay", "gradebook", "book", "limits", "late", "deadlines",
    "extensions",
)  # fmt: skip
POSTGRESQL = ("postgresql", "postgresql+psycopg")
LATE = ("slip_days", "cost_per_day", "cap", "hard_end")
END_OF_DAY = datetime.time(23, 59, 59)


class BadRules(UsageError):
    """The course.toml of a class cannot be followed; the message says where, and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a class agreed on. Times know their zone."""

    policy: Policy = field(default_factory=Policy)
    tiers: tuple[str, ...] = TIERS
    deadlines: dict[str, datetime.datetime] = field(default_factory=dict)
    hard_ends: dict[str, datetime.datetime] = field(default_factory=dict)
    extensions: dict[str, dict[str, datetime.datetime]] = field(default_factory=dict)

    def dates(self, student: str, slug: str) -> Dates:
        return Dates(
            deadline=self.deadlines.get(slug),
            hard_end=self.hard_ends.get(slug),
            extended=self.extensions.get(student, {}).get(slug),
        )

    def left_out(self, chapter: Chapter) -> set[str]:
        """The tests and written answers whose points do not count."""
        tests = {
            test.id
            for exercise in chapter.exercises.values()
            if exercise.tier not in self.tiers
            for test in exercise.tests
        }
        return tests | {
            cell.id for cell in chapter.written if cell.header.get("tier", "core") not in self.tiers
        }


def rules(folder: ClassFolder, course: Course) -> Rules:
    """The rules of this class. Raises BadRules, with the place and the cure."""
    path = folder.root / NAME
    said = _said(path)
    late = _table(path, said, "late", LATE)
    policy = Policy(
        zone=_zone(path, said.get("time_zone", "UTC")),
        slip_days=_number(path, "[late] slip_days", late.get("slip_days", 0), whole=True),
        cost=Fraction(_number(path, "[late] cost_per_day", late.get("cost_per_day", 0), most=1)),
        cap=Fraction(_number(path, "[late] cap", late.get("cap", 1), most=1)),
    )
    read = _Dates(path, course, policy.zone)
    deadlines = read.table("[deadlines]", said.get("deadlines", {}), read.moment)
    made = Rules(
        policy=policy,
        tiers=_tiers(path, said.get("tiers", TIERS)),
        deadlines=deadlines,
        hard_ends=read.table("[late.hard_end]", late.get("hard_end", {}), read.moment),
    )
    read.none_before(deadlines, "[late.hard_end]", made.hard_ends)
    return replace(made, extensions=read.extensions(said.get("extensions", {}), deadlines))


def limits(folder: ClassFolder) -> Limits:
    """What one test of this class may use. Raises BadRules."""
    path = folder.root / NAME
    known = asdict(Limits())
    said = _table(path, _said(path), "limits", tuple(known))
    for key, value in said.items():
        number = _number(path, f"[limits] {key}", value, least=1e-3, whole=key == "timeouts")
        known[key] = number if key == "timeouts" else float(number)
    return Limits(**known)


def overlay(folder: ClassFolder) -> Path | None:
    """The folder with this class's own hidden tests, where it names one. Raises BadRules."""
    path = folder.root / NAME
    named = _said(path).get("overlay")
    _need(named is None or isinstance(named, str), path, f"overlay is a folder, not {named!r}")
    return None if named is None else folder.root / Path(named).expanduser()


def gradebook_url(folder: ClassFolder) -> str | None:
    """Where the gradebook is kept instead of in gradebook.db, as SQLAlchemy and nbgrader write it.

    A password is left to PostgreSQL's own ways, `~/.pgpass` and PGPASSWORD: this file is copied,
    shown and committed.
    """
    path = folder.root / NAME
    named = _said(path).get("gradebook")
    if named is None:
        return None
    what = 'gradebook is like "postgresql://user@host/database"'
    _need(isinstance(named, str), path, f"{what}, not {named!r}")
    try:
        url = urlsplit(named)
        right = url.scheme in POSTGRESQL and url.path.strip("/") != ""
        secret = url.password is not None or "password" in parse_qs(url.query)
    except ValueError:
        right = secret = False
    why = "gradebook holds a password; keep it in ~/.pgpass, or in PGPASSWORD"
    _need(not secret, path, why)
    _need(right, path, f"{what}, not {named!r}")
    return named.replace(url.scheme, POSTGRESQL[-1], 1)


def book_address(folder: ClassFolder) -> str | None:
    """Where this class reads the book on the web, if it says so. Raises BadRules."""
    path = folder.root / NAME
    named = _said(path).get("book")
    if named is not None:
        what = f'book is an address like "https://example.org/course", not {named!r}'
        _need(isinstance(named, str) and _is_address(named), path, what)
    return named


def _is_address(text: str) -> bool:
    """Of a folder on the web: its pages are found by adding a slash and their names."""
    try:
        parts = urlsplit(text)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return right and text.isprintable() and not re.search(r'[\s?#@\\<>"]|\.html$', text)


def _said(path: Path) -> dict:
    """The file as tomllib reads it, numbers exact: a cost of 0.1 is a tenth."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8-sig"), parse_float=Decimal)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadRules(
            f"{path} cannot be read as TOML: {error}; a name with other signs than a-z, A-Z, 0-9, "
            '- and _ stands in quotes, as in [extensions."Zoë"]'
        ) from None
    return _known(path, "", said, KNOWN)


def _table(path: Path, said: dict, key: str, known: tuple[str, ...]) -> dict:
    return _known(path, f"[{key}] ", said.get(key, {}), known)


def _known(path: Path, where: str, table, known: tuple[str, ...]) -> dict:
    _need(isinstance(table, dict), path, f"{where.strip()} is a table, not {table!r}")
    for key in table:
        _need(key in known, path, f"{where}{key} is no key; known here: {', '.join(known)}")
    return table


def _need(holds: bool, path: Path, what: str) -> None:
    if not holds:
        raise BadRules(f"{path}: {what}")


def _number(path: Path, where: str, value, *, least=0, most=None, whole=False):
    right = isinstance(value, int if whole else (int, Decimal)) and not isinstance(value, bool)
    right = right and Decimal(value).is_finite()
    right = right and value >= least and (most is None or value <= most)
    kind = "a whole number" if whole else "a number"
    span = f"of {least} or more" if most is None else f"from {least} to {most}"
    _need(right, path, f"{where} is {kind} {span}, not {value}")
    return value


def _tiers(path: Path, value) -> tuple[str, ...]:
    right = isinstance(value, list | tuple) and value and all(one in TIERS for one in value)
    _need(bool(right), path, f"tiers is a list of some of {list(TIERS)}, not {value!r}")
    return tuple(value)


def _zone(path: Path, name) -> datetime.tzinfo:
    if name == "UTC":  # Windows knows no other zone until tzdata is installed
        return datetime.UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, TypeError, LookupError):
        raise BadRules(
            f'{path}: time_zone {name!r} is not known here; a name is like "Europe/Berlin" '
            "(where no zone is known, `pip install tzdata`)"
        ) from None


class _Dates:
    """Reads the tables that give a chapter a time."""

    def __init__(self, path: Path, course: Course, zone: datetime.tzinfo):
        self.path, self.course, self.zone = path, course, zone

    def table(self, where: str, said, read: Callable) -> dict[str, datetime.datetime]:
        """Chapter -> time; `read(where, slug, value)` makes the time."""
        _need(isinstance(said, dict), self.path, f"{where} is a table, not {said!r}")
        found = {}
        for key, value in said.items():
            try:
                slug = self.course.resolve(key)
            except UnknownChapter as error:
                top = f"; move {key} to the top of the file, above all [tables]" * (key in KNOWN)
                raise BadRules(f"{self.path}: {where} {error}{top}") from None
            _need(slug not in found, self.path, f"{where} names {slug} twice")
            found[slug] = read(f"{where} {key}", slug, value)
        return found

    def moment(self, where: str, _slug: str, value) -> datetime.datetime:
        if type(value) is datetime.date:
            value = datetime.datetime.combine(value, END_OF_DAY)
        _need(
            isinstance(value, datetime.datetime),
            self.path,
            f"{where} is {value!r}, not a time; write 2026-10-12T18:00:00 without quotes",
        )
        return self._sure(where, value if value.tzinfo else value.replace(tzinfo=self.zone))

    def extensions(self, said, deadlines: dict) -> dict[str, dict[str, datetime.datetime]]:
        _need(isinstance(said, dict), self.path, f"extensions is a table, not {said!r}")

        def longer(where: str, slug: str, value) -> datetime.datetime:
            _need(slug in deadlines, self.path, f"{where}: there is no deadline for {slug}")
            if isinstance(value, int):
                days = _number(self.path, where, value, least=1, most=3650, whole=True)
                return self._sure(where, deadlines[slug] + datetime.timedelta(days=days))
            return self.moment(where, slug, value)

        found = {}
        for student, table in said.items():
            where = f"[extensions.{student}]"
            ident = unicodedata.normalize("NFC", student)
            found[ident] = self.table(where, table, longer)
            self.none_before(deadlines, where, found[ident])
        return found

    def none_before(self, deadlines: dict, where: str, these: dict) -> None:
        for slug, moment in these.items():
            if slug in deadlines:
                _need(
                    moment.timestamp() >= deadlines[slug].timestamp(),
                    self.path,
                    f"{where} {slug}: {moment} is before the deadline, {deadlines[slug]}",
                )

    def _sure(self, where: str, moment: datetime.datetime) -> datetime.datetime:
        """Refuse an hour that the change of clocks has twice or not at all."""
        local = moment.astimezone(self.zone)
        either = {local.replace(fold=fold).timestamp() for fold in (0, 1)}
        what = f"{where}: the clocks change at {moment:%Y-%m-%d %H:%M}; choose another hour"
        _need(len(either) == 1, self.path, what)
        return local

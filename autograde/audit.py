"""Grade every known right, wrong and trivial answer of a chapter, and say where the judging fails.

The answers are in `tests/answers/NN_slug.py`. What is asked of each exercise: all right answers
get all points, all wrong ones lose some and are told the expected words, no mistake is named that
was not made, answers without any thought get nothing in any test, and what students can see
already rejects nearly every wrong answer.
"""

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from autograde.chapters import Course
from autograde.overlay import add_overlay, with_overlay
from autograde.run import Engine, SetupFailed, Verdict, need_setup
from autograde.source import Chapter, Exercise, load

FEWEST_RIGHT, FEWEST_WRONG = 2, 3
VISIBLE_SHARE = 0.85  # of a chapter's wrong answers, rejected by what students can see

# A trivial answer has the right name, and a result of the right form without any thought.
TRIVIAL = """
{reference}

def _thoughtless(answer, kind):
    import random, torch

    def like(right):
        if isinstance(right, dict):
            return {{key: like(value) for key, value in right.items()}}
        if isinstance(right, (list, tuple)):
            return type(right)(map(like, right)) if type(right) in (list, tuple) else right
        if isinstance(right, torch.Tensor):
            if kind == "random":
                flat = torch.rand(right.shape) if right.is_floating_point() else None
                return torch.randint(0, 2, right.shape).to(right.dtype) if flat is None else flat
            value = float("nan") if kind == "nan" else float(kind == "ones")
            return torch.full_like(right, value if right.is_floating_point() else kind == "ones")
        if isinstance(right, bool):
            return random.random() < 0.5 if kind == "random" else kind == "ones"
        if isinstance(right, (int, float)):
            values = {{"zeros": 0, "ones": 1, "random": random.random(), "nan": float("nan")}}
            return type(right)(values[kind]) if kind in ("zeros", "ones") else values[kind]
        return ""

    def answered(*args, **kwargs):
        if kind == "none":
            return None
        if kind == "first":
            return [*args, *kwargs.values()][0] if args or kwargs else None
        try:
            return like(answer(*args, **kwargs))
        except Exception:
            return None

    return answered

{wrapped}
"""
TRIVIAL_KINDS = ("none", "first", "zeros", "ones", "random", "nan")


@dataclass(slots=True)
class Finding:
    """What the audit saw of one exercise. The lists hold names; empty ones are good news."""

    exercise: str
    right: int = 0
    wrong: int = 0
    rejected_right: list[str] = field(default_factory=list)
    accepted_wrong: list[str] = field(default_factory=list)
    seen_by_visible: int = 0
    named: int = 0
    to_name: int = 0
    unnamed: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)
    trivial_points: list[str] = field(default_factory=list)
    too_few: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """One sentence for each thing that must be mended."""
        told = {
            "right answer rejected": self.rejected_right,
            "wrong answer accepted": self.accepted_wrong,
            "expected words not shown": self.unnamed,
            "a mistake named that was not made": self.misnamed,
            "trivial answer gets points": self.trivial_points,
            "too few answers": self.too_few,
        }
        return [f"{self.exercise}: {what}: {one}" for what, names in told.items() for one in names]


def load_answers(slug: str, course: Course) -> tuple[Mapping, Mapping]:
    """RIGHT and WRONG of `tests/answers/NN_slug.py`, loaded by path."""
    path = course.answers(slug)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; each chapter has a file of known answers")
    spec = importlib.util.spec_from_file_location(f"answers_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.RIGHT, module.WRONG


def audit(slug: str, engine: Engine, course: Course | None = None, *, only=None) -> list[Finding]:
    """Audit one chapter, or the exercises named in `only`. Raises SetupFailed, once for all."""
    course = course or Course()
    chapter = load(slug, course)
    right, wrong = load_answers(slug, course)
    if unknown := (set(right) | set(wrong)) - set(chapter.exercises):
        raise ValueError(f"{course.answers(slug).name} has answers to unknown {sorted(unknown)}")
    chosen = [one for one in chapter.exercises.values() if not only or one.id in only]
    return [
        _audit_exercise(chapter, one, right.get(one.id, {}), wrong.get(one.id, {}), engine)
        for one in chosen
    ]


def visible_share(findings: list[Finding]) -> float:
    wrong = sum(finding.wrong for finding in findings)
    return sum(finding.seen_by_visible for finding in findings) / wrong if wrong else 1.0


def _audit_exercise(
    chapter: Chapter, exercise: Exercise, right: Mapping, wrong: Mapping, engine: Engine
) -> Finding:
    finding = Finding(exercise.id, right=len(right) + 1, wrong=len(wrong))
    if len(right) < FEWEST_RIGHT:
        finding.too_few.append(f"{len(right)} right, at least {FEWEST_RIGHT} are needed")
    if len(wrong) < FEWEST_WRONG:
        finding.too_few.append(f"{len(wrong)} wrong, at least {FEWEST_WRONG} are needed")

    def run(source: str, visible_only: bool = False) -> list[Verdict]:
        answers, one = {exercise.id: source}, [exercise.id]
        found = engine.run(chapter, answers, exercises=one, visible_only=visible_only)
        need_setup(found.values())
        return list(found.values())

    for name, source in {"the reference": exercise.cell.solution_text, **right}.items():
        for verdict in run(source) + run(source, visible_only=True):
            if verdict.score < verdict.points:
                finding.rejected_right.append(f"{name}, {verdict.test}: {verdict.message}")
    for name, entry in wrong.items():
        _audit_wrong(finding, name, entry, run)
    for kind in TRIVIAL_KINDS:
        for verdict in run(_trivial(exercise, kind)):
            if verdict.score:
                finding.trivial_points.append(f"{kind}, {verdict.test}")
    return finding


def _audit_wrong(finding: Finding, name: str, entry: tuple, run) -> None:
    source, words = entry[0], entry[1]
    failed = [verdict for verdict in run(source) if verdict.score < verdict.points]
    finding.seen_by_visible += any(v.score < v.points for v in run(source, visible_only=True))
    if not failed:
        finding.accepted_wrong.append(name)
        return
    if words is None:
        if len(entry) < 3:
            finding.unnamed.append(f"{name}: no words are expected and no reason is given")
    else:
        finding.to_name += 1
        told = any(words.lower() in verdict.message.lower() for verdict in failed)
        finding.named += told
        if not told:
            finding.unnamed.append(f"{name}: {words!r} is in none of {[v.message for v in failed]}")
    for verdict in failed:
        if verdict.mistake and (words is None or words.lower() not in verdict.message.lower()):
            finding.misnamed.append(f"{name}: told {verdict.mistake!r} by {verdict.test}")


def _trivial(exercise: Exercise, kind: str) -> str:
    names = sorted(exercise.defines)
    wrapped = "\n".join(f"{name} = _thoughtless({name}, {kind!r})" for name in names)
    return TRIVIAL.format(reference=exercise.cell.solution_text, wrapped=wrapped)


def add_audit(commands) -> None:
    parser = commands.add_parser("audit", help="grade all known right, wrong and trivial answers")
    parser.add_argument(
        "names", nargs="*", metavar="chapter", help="02, or one exercise: 02-softmax"
    )
    add_overlay(parser)
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(run=run_audit)


def run_audit(args) -> int:
    """Print one line an exercise; return 1 when anything must be mended."""
    course = with_overlay(Course(), args.overlay)
    by_chapter: dict[str, list[str]] = {}
    for name in args.names or course.slugs():
        numbered = {slug.split("-")[0]: slug for slug in course.slugs()}
        slug = numbered.get(name.split("-")[0]) or course.resolve(name)
        is_exercise = name in load(slug, course).exercises
        if not is_exercise:
            course.resolve(name)
        by_chapter.setdefault(slug, []).extend([name] if is_exercise else [])
    findings, problems = {}, []
    with Engine() as engine:
        for slug, only in by_chapter.items():
            if not args.json:
                print(f"{slug}\n  {'':36} right  wrong  seen  named  misnamed  trivial")
            findings[slug] = []
            for exercise in load(slug, course).exercises:
                if only and exercise not in only:
                    continue
                try:
                    [found] = audit(slug, engine, course, only=[exercise])
                except SetupFailed as error:
                    problems.append(f"{slug}: {error}")
                    break
                findings[slug].append(found)
                problems += found.problems
                if not args.json:
                    print(_row(found), flush=True)
            share = visible_share(findings[slug])
            if findings[slug] and share < VISIBLE_SHARE and not only:
                needed = f"at least {VISIBLE_SHARE:.0%} is asked"
                problems.append(
                    f"{slug}: visible checks reject {share:.0%} of wrong ones, {needed}"
                )
            if not args.json and findings[slug]:
                print(f"  visible checks alone reject {share:.0%} of the wrong answers")
    if args.json:
        shown = {slug: [asdict(one) for one in found] for slug, found in findings.items()}
        print(json.dumps({"chapters": shown, "problems": problems}, indent=1))
    else:
        print("\n".join(f"MEND  {problem}" for problem in problems) or "nothing to mend")
    return 1 if problems else 0


def _row(found: Finding) -> str:
    right = f"{found.right - len({p.split(',')[0] for p in found.rejected_right})}/{found.right}"
    wrong = f"{found.wrong - len(found.accepted_wrong)}/{found.wrong}"
    seen, named = f"{found.seen_by_visible}/{found.wrong}", f"{found.named}/{found.to_name}"
    counts = f"{len(found.misnamed):>9} {len(found.trivial_points):>8}"
    return f"  {found.exercise:<36} {right:>5} {wrong:>6} {seen:>5} {named:>6} {counts}"

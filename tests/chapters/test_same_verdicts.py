"""A check says the same in a learner's notebook, where all share one process, as in the grader."""

import pytest

from autograde.audit import load_answers
from autograde.chapters import Course
from autograde.engine.cells import execute, fresh_space
from autograde.engine.trial import trial
from autograde.run import Engine, Limits
from autograde.source import load

COURSE = Course()
ENDED = ("timeout", "killed", "out of memory")  # in a notebook these take the kernel with them


@pytest.fixture(scope="module")
def engine():
    with Engine(Limits(cpu=2, wall=30)) as running:
        yield running


def in_a_notebook(chapter, exercise, answer: str) -> list[tuple]:
    """State, rule and mistake of each visible check, run right after the answer's cell."""
    space, trouble = fresh_space(), None
    for cell in chapter.setup:
        execute(cell.text, "setup", space)
    try:
        execute(answer, exercise.id, space)
    except Exception as error:
        trouble = (str(error), isinstance(error, NotImplementedError), False)
    found = [trial(test.id, test.visible_text, space, trouble) for test in exercise.tests]
    return [(one["state"], one["rule"], one["mistake"]) for one in found]


@pytest.mark.parametrize("slug", COURSE.slugs())
@pytest.mark.filterwarnings("ignore")  # some wrong answers are warned of, and rightly
@pytest.mark.usefixtures("no_shape_hook")  # learners have none
def test_every_known_answer_gets_the_same_verdicts(engine, slug):
    chapter, (right, wrong) = load(slug), load_answers(slug, COURSE)
    compared = 0
    for exercise in chapter.exercises.values():
        answers = dict(right.get(exercise.id, {}))
        answers |= {name: entry[0] for name, entry in wrong.get(exercise.id, {}).items()}
        for name, answer in answers.items():
            verdicts = engine.run(
                chapter, {exercise.id: answer}, exercises=[exercise.id], visible_only=True
            ).values()
            if any(v.state in ENDED or v.rule == "forbidden" for v in verdicts):
                continue  # the fence of `forbid` is the grader's alone
            graded = [(v.state, v.rule, v.mistake) for v in verdicts]
            assert in_a_notebook(chapter, exercise, answer) == graded, f"{exercise.id}: {name}"
            compared += 1
    assert compared > 3 * len(chapter.exercises)

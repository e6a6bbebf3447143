"""Every public verb, and every method of the nouns, is called with arguments that it cannot take:
the answer is a sentence of ours at the border, never an AttributeError or an IndexError from deep
inside.
"""

import inspect
import warnings

import pytest

import tailpath as tp
from tailpath.distributed.part import Part

ROWS = [("home", "road", "work", 0.9, 20), ("home", "road", "work", 0.1, 60)]
SSP = tp.SSP.from_outcomes([*ROWS, ("home", "train", "work", 1, 30)], "home", ["work"])
OPEN = tp.IntervalSSP.from_outcomes(
    [("a", "go", "g", (0.4, 0.6), 1), ("a", "go", "g", (0.4, 0.6), 5)], "a", ["g"]
)
ROAD, TRAIN = {"home": "road"}, {"home": "train"}
RISK = tp.CVaR(0.1)
GOOD = {
    "ssp": SSP,
    "policy": ROAD,
    "first": ROAD,
    "second": TRAIN,
    "alpha": 0.1,
    "a": 0.1,
    "risk": RISK,
    "objective": RISK,
    "path": "x.json",
    "costs": [1.0, 2.0],
    "n": 3,
    "seed": 0,
    "atoms": [0.1, 1.0],
    "deadline": 30,
    "distributions": {},
    "cost": 5,
    "x": 1.0,
    "state": 0,
    "action": "road",
    "choice": 0,
    "alphas": [0.1],
    "alpha0": 0.1,
    "n_atoms": 3,
    "t": 1.0,
}
WRONG = (None, -1, 1.5, float("nan"), "", "x", [], {}, (), object(), b"x", [None], True)
#: What others made: an Axes is anything that draws, and these take any value or stop for nobody.
LEFT_OUT = {"ax", "start", "stop", "value"}

VERBS = [
    getattr(tp, name)
    for name in tp.__all__
    if inspect.isfunction(getattr(tp, name)) and name != "show_progress"
]
BEST = tp.solve_cvar_exact(SSP, 0.05)
NOUNS = [
    SSP,
    OPEN,
    tp.evaluate(SSP, ROAD, 0.05),
    tp.evaluate(OPEN, {"a": "go"}, 0.5),
    BEST,
    tp.solve_expected(SSP),
    tp.solve(SSP, RISK),
    tp.worst_runs(SSP, ROAD, 0.1),
    tp.differences(SSP, ROAD, TRAIN, 0.1),
]
#: Methods between modules, not for users: what they are given was checked.
INSIDE = {"loss_bounds", "mean_loss"}
METHODS = [
    getattr(noun, name)
    for noun in NOUNS
    for name in dir(type(noun))
    if not name.startswith("_")
    and name not in INSIDE
    and inspect.ismethod(getattr(noun, name, None))
]


@pytest.mark.parametrize("called", [*VERBS, *METHODS], ids=lambda each: each.__qualname__)
def test_wrong_arguments_are_answered(called, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore", tp.TailpathWarning)
    parameters = [
        each
        for each in inspect.signature(called).parameters.values()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    needed = {each.name: GOOD.get(each.name) for each in parameters if each.default is each.empty}
    for each in parameters:
        for wrong in WRONG if each.name not in LEFT_OUT else ():
            given = {**needed, each.name: wrong}
            positional = [given.pop(p.name) for p in parameters if p.name in needed and p.kind == 1]
            try:
                called(*positional, **given)
            except tp.TailpathError as error:
                assert "\n" not in str(error).strip()
            except TypeError as error:
                assert each.name in str(error), (each.name, wrong, error)


def test_the_sentence_names_the_argument():
    for call, sentence in (
        (lambda: tp.evaluate(None, ROAD, 0.1), "evaluate takes a model, not a NoneType; tailpath"),
        (lambda: SSP.choice_name(-1), "choice must lie in 0 .. 1, not -1"),
        (lambda: SSP.choice_index("home", "road"), "state must be a whole number, not 'home'"),
        (lambda: NOUNS[2].cdf(""), "cdf: x must be a number or several, not ''"),
        (
            lambda: tp.read_policy(None, SSP),
            "read_policy: path must be a string or an os.PathLike, not",
        ),
        (lambda: tp.IntervalSSP(None, [], []), "IntervalSSP: inside must be an SSP, not None"),
    ):
        with pytest.raises(tp.TailpathError) as refused:
            call()
        assert str(refused.value).startswith(sentence)


def test_commands_with_another_name_in_python_are_answered():
    for command in ("explain", "diff", "convert", "info"):
        with pytest.raises(AttributeError, match=rf"no attribute '{command}'; use "):
            getattr(tp, command)


def test_a_part_of_a_model_is_for_verbs_that_take_parts():
    part = Part.of(SSP, 0, 1)
    for call in (
        lambda: tp.solve_expected(part),
        lambda: tp.evaluate(part, ROAD, 0.1),
        lambda: tp.solve_on_time(part, 30),
    ):
        with pytest.raises(tp.TailpathError, match="takes a whole model, not a part of one"):
            call()


def test_what_works_is_not_refused():
    """Annotations are looked at only once something went wrong."""
    assert SSP.choice_name(True) == "train"
    assert NOUNS[2].cdf(20) == NOUNS[2].cdf([20])[0]

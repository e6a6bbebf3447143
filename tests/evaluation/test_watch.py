"""Searches that are watched: progress, and what an interrupt leaves behind."""

import math
import os
import signal
import subprocess
import sys
import threading
import warnings

import pytest

import tailpath as tp
from tailpath.errors import EvaluationInterrupted
from tailpath.evaluation.engine import Request, SearchMonitor
from tailpath.evaluation.evaluate import evaluate_request
from tailpath.model.border import Border

GRID = tp.domains.gridworld("8x9")
EXPECTED = tp.solve_expected(GRID).policy
RIVER = tp.domains.river(rows=10, columns=3)
BUDGET = tp.solve_cvar_exact(RIVER, 1e-6).policy(1e-6)
RETRY = tp.SSP.from_outcomes([("s", "a", "s", 0.25, 1), ("s", "a", "g", 0.75, 2)], "s", ["g"])
SEARCHES = {
    "lattice": (GRID, EXPECTED, "lattice", 1.0),
    "queue": (GRID, EXPECTED, "queue", 1.0),
    "budget": (RIVER, BUDGET, "lattice", 1.0),
    "discount": (RETRY, tp.MarkovPolicy({"s": "a"}), "queue", 0.9),
    "history": (RETRY, tp.HistoryPolicy(lambda h: "a"), "queue", 1.0),
}


def watched(name, alpha, progress=None):
    """A search that looks at its user after every expansion."""
    ssp, policy, engine, gamma = SEARCHES[name]
    return evaluate_request(
        Request(
            Border(ssp),
            policy,
            engine,
            alpha,
            gamma=gamma,
            monitor=SearchMonitor(progress),
            pause=1,
        )
    )


@pytest.mark.parametrize("name", SEARCHES)
def test_progress_is_told(name):
    told = []
    found = watched(name, 1e-3, lambda expanded, arrived: told.append((expanded, arrived)))
    assert len(told) > 3
    assert told == sorted(told)
    assert all(
        0 <= arrived <= 1 + 1e-12 and 0 <= expanded <= found.expanded for expanded, arrived in told
    )


@pytest.mark.parametrize("name", SEARCHES)
def test_an_interrupt_carries_sound_bounds(name):
    truth = watched(name, 1e-6).cvar(1e-6)
    widths = []
    for patience in (0, 0.3, 0.9, 0.999):

        def progress(expanded, arrived, patience=patience):
            if arrived >= patience:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            watched(name, 1e-6, progress)
        assert isinstance(caught.value, EvaluationInterrupted)
        low, high = caught.value.bounds
        assert low <= truth <= high
        assert "interrupted with " in str(caught.value)
        assert f"lies in [{low:.9g}, {high:.9g}]" in str(caught.value)
        widths.append((low, high))
    assert [low for low, _ in widths] == sorted(low for low, _ in widths)
    assert [high for _, high in widths] == sorted((high for _, high in widths), reverse=True)
    # A history has no expected cost to complete it with, and neither has a policy with budget left.
    assert widths[-1][1] < 1e6 or name in ("history", "budget")


@pytest.mark.parametrize("name", SEARCHES)
def test_a_signal_at_any_moment_leaves_nothing_half_done(name):
    """The signal comes from the progress function; the search goes on to the next point where its
    numbers are sound.
    """
    truth = watched(name, 1e-6).cvar(1e-6)

    def progress(expanded, arrived):
        if arrived > 0.5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(EvaluationInterrupted) as caught:
        watched(name, 1e-6, progress)
    assert caught.value.bounds[0] <= truth <= caught.value.bounds[1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_inside_a_policy_waits_for_the_node():
    """The function of a history policy is called in the middle of an expansion."""

    def act(history):
        if len(history) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return "a"

    with pytest.raises(EvaluationInterrupted) as caught:
        tp.evaluate(RETRY, tp.HistoryPolicy(act), 1e-6)
    low, high = caught.value.bounds
    assert low <= tp.evaluate(RETRY, tp.MarkovPolicy({"s": "a"}), 1e-6).cvar(1e-6)
    assert high == math.inf, "a history has no expected cost to complete it with"


def test_the_second_signal_is_not_held_back():
    watch = SearchMonitor(None)
    with pytest.raises(KeyboardInterrupt), watch:
        os.kill(os.getpid(), signal.SIGINT)
        assert watch.stop
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_search_for_bounds_holds_no_signal():
    """Noted, and not looked at before its end, a Ctrl-C was lost."""
    script = """
import os, signal, threading, time
from tests.long_verbs import VERBS
exec(VERBS)
ask = VERBS["bounds"]
ask()
begin = time.perf_counter()
ask()
took, told = time.perf_counter() - begin, 0
for moment in range(10):
    timer = threading.Timer(took * (moment + 0.5) / 10, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        ask()
        time.sleep(1)
    except KeyboardInterrupt:
        told += 1
    timer.join()
print(told)
"""
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | paths, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr


def test_a_handler_of_the_user_stays():
    calls = []

    def handler(*signal_and_frame):
        calls.append(1)

    before = signal.signal(signal.SIGINT, handler)
    try:
        watched("lattice", 1e-3, lambda *numbers: os.kill(os.getpid(), signal.SIGINT))
        assert calls
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_can_search():
    found = []
    worker = threading.Thread(target=lambda: found.append(tp.evaluate(GRID, EXPECTED, 0.01)))
    worker.start()
    worker.join()
    assert found[0].cvar(0.01) == tp.evaluate(GRID, EXPECTED, 0.01).cvar(0.01)


def test_an_error_of_the_progress_function_is_an_error():
    def progress(expanded, arrived):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        watched("lattice", 0.01, progress)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_search_that_is_slow_says_why(monkeypatch):
    """Costs without a unit: whoever waits is told so, once, at the line that waits."""
    for name, value in {"SLOW_FROM": 3, "PAUSE": 1}.items():
        monkeypatch.setattr(f"tailpath.evaluation.queue.{name}", value)
    rows = [("s", "a", "s", 0.5, math.sqrt(2)), ("s", "a", "g", 0.5, math.pi)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    with pytest.warns(tp.TailpathWarning, match=r"no common unit.*grid of 0\.001") as found:
        tp.evaluate(ssp, {"s": "a"}, 0.01)
    assert [each.filename for each in found] == [__file__]
    with warnings.catch_warnings():  # a limit that is close comes first
        warnings.simplefilter("error")
        tp.evaluate(ssp, {"s": "a"}, 0.05, max_nodes=6)


def test_inside_of_another_verb_an_interrupt_is_a_plain_one(monkeypatch):
    """The CVaR of a policy on the way says nothing about the frontier."""
    ask = tp.CVaR(0.05)
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])

    def stopped(*_):
        raise EvaluationInterrupted("interrupted with 0.3 of the probability arrived", (1, 2))

    monkeypatch.setattr("tailpath.evaluation.evaluate.evaluate_request", stopped)
    with pytest.raises(EvaluationInterrupted):
        tp.evaluate(ssp, {"s": "a"}, 0.05)
    for verb in (tp.frontier, tp.page):
        with pytest.raises(KeyboardInterrupt) as caught:
            verb(ssp, *([ask] if verb is tp.frontier else ["unwritten.html"]))
        assert not isinstance(caught.value, EvaluationInterrupted) and not str(caught.value)

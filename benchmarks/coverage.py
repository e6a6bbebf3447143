"""How often the truth lies in the band of intervals from counts: counts are drawn from known
models, again and again.

With a confidence of 0.9 it must do so nine times in ten, for the mean and CVaR of a policy and for
the optimum. Intervals of Clopper and Pearson hold at least as often as they say, and all of them at
once more often than the union bound says, so that it is nearly always.
"""

from __future__ import annotations

import math
import pathlib
import warnings
from typing import Any, NamedTuple

import numpy as np

import tailpath as tp

CONFIDENCE, ALPHA = 0.9, 0.2
#: What is asked of every model.
QUESTIONS = ("mean of a policy", "CVaR of a policy", "least CVaR")
FIGURE = pathlib.Path(__file__).parents[1] / "docs" / "pictures" / "coverage.png"


class Covered(NamedTuple):
    """How often each question's truth lay in its band, and how wide the bands were, relatively, on
    average.
    """

    held: Any
    width: Any


def run(small: bool = False) -> None:
    runs, trips = (5, (30, 300)) if small else (1000, (30, 300))
    least = runs * CONFIDENCE - 3 * math.sqrt(runs * CONFIDENCE * (1 - CONFIDENCE))
    found: dict[tuple[str, int], Covered] = {}
    for name, truth in models().items():
        for count in trips:
            found[name, count] = covered = experiment(truth, count, runs)
            shown = ", ".join(
                f"{question} {held:.0f}" for question, held in zip(QUESTIONS, covered.held)
            )
            print(
                f"{name}, {count} trips on each choice, {runs} times: {shown} (at least"
                f" {least:.0f}); width of the CVaR {covered.width[1]:.2f}"
            )
            assert (covered.held >= least).all()
    draw(found, runs, None if small else FIGURE)


def models() -> dict[str, tp.SSP]:
    loop = [
        ("s", "a", "t", 0.7, 1),
        ("s", "a", "g", 0.3, 2),
        ("s", "b", "g", 0.5, 2),
        ("s", "b", "g", 0.5, 4),
    ]
    loop += [("t", "a", "g", 0.6, 1), ("t", "a", "s", 0.4, 1)]
    roads = [("home", "motorway", "junction", 0.82, 10), ("home", "motorway", "junction", 0.18, 22)]
    roads += [("home", "train", "work", 0.85, 33), ("home", "train", "work", 0.15, 37)]
    roads += [
        ("junction", "motorway", "work", 0.78, 12),
        ("junction", "motorway", "work", 0.22, 30),
        ("junction", "back road", "work", 1, 23),
    ]
    return {
        "two ways": tp.SSP.from_outcomes(loop, "s", ["g"]),
        "roads": tp.SSP.from_outcomes(roads, "home", ["work"]),
    }


def experiment(truth: tp.SSP, trips: int, runs: int, seed: int = 7) -> Covered:
    """Count so many trips on every choice of a model, so many times."""
    policy = tp.solve_expected(truth).policy
    costs, best = tp.evaluate(truth, policy, ALPHA), tp.solve_cvar_exact(truth, ALPHA).cvar(ALPHA)
    true = np.array([costs.mean, costs.cvar(ALPHA), best])
    rng, held, width = np.random.default_rng(seed), np.zeros(3), np.zeros(3)
    for _ in range(runs):
        low, high = band(counted(truth, trips, rng), policy)
        held += (low <= true) & (true <= high)
        width += (high - low) / true / runs
    return Covered(held, width)


def counted(truth: tp.SSP, trips: int, rng: np.random.Generator) -> tp.IntervalSSP:
    rows = []
    for k in range(truth.n_choices):
        span = slice(*truth.choice_outcomes[k : k + 2].tolist())
        state, action = truth.states[int(truth.choice_state[k])], truth.choice_name(k)
        seen = rng.multinomial(trips, truth.outcome_probability[span]).tolist()
        targets, costs = truth.outcome_target[span].tolist(), truth.outcome_cost[span].tolist()
        rows += [(state, action, truth.states[t], n, c) for t, n, c in zip(targets, seen, costs)]
    with warnings.catch_warnings():  # outcomes that were never seen are part of it
        warnings.simplefilter("ignore", tp.TailpathWarning)
        return tp.IntervalSSP.from_counts(rows, truth.start, truth.goals, CONFIDENCE)


def band(model: tp.IntervalSSP, policy: tp.Policy) -> tuple[Any, Any]:
    """The least and the most that each question may have for an answer, as far as is proved."""
    decisions = {state: policy.action(state) for state in model.states if state not in model.goals}  # type: ignore[call-arg]
    costs = tp.evaluate(model, decisions, ALPHA)
    hope, fear = (
        tp.solve_cvar_exact(model, ALPHA, nature=nature).bounds(ALPHA)
        for nature in ("cooperative", "adversarial")
    )
    low, high = zip(costs.mean_bounds, costs.bounds(ALPHA), (hope[0], fear[1]))
    return np.array(low), np.array(high)


def draw(found: dict[tuple[str, int], Covered], runs: int, place: pathlib.Path | None) -> None:
    """The share of runs in which the truth lay in the band, and how wide the band was. Without a
    place it is not kept.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
    for name in dict.fromkeys(name for name, _ in found):
        trips = [count for known, count in found if known == name]
        for i, (question, style) in enumerate(zip(QUESTIONS, ("o:", "s--", "^-"))):
            left.plot(
                trips,
                [found[name, count].held[i] / runs for count in trips],
                style,
                markersize=4,
                label=f"{name}: {question}",
            )
            right.plot(trips, [found[name, count].width[i] for count in trips], style, markersize=4)
    left.axhline(CONFIDENCE, color="black", linewidth=0.8)
    left.set(
        xscale="log",
        ylim=(0.88, 1.005),
        xlabel="trips on each choice",
        ylabel=f"truth in the band ({runs} times)",
    )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="trips on each choice",
        ylabel="width of the band / truth",
    )
    for axes in (left, right):
        axes.set_xticks(trips, map(str, trips))
        axes.minorticks_off()
    left.legend(frameon=False, fontsize=7)
    if place is not None:
        figure.savefig(place, dpi=130)
    pyplot.close(figure)

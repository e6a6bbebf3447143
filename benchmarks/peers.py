"""Other programs on the same models in the same run, as ratios; and how our times grow with the
model.

Storm computes with its sound methods, as it does by default, on a model it has already built. The
value iteration of scipy is a matrix product and a minimum per sweep, until no value moves by more
than 1e-6, relatively. QuantEcon has no undiscounted problems, so it gets a discount of 1 - 1e-6 and
its policy iteration. The plain queue is Algorithm 1 in twenty lines of Python, without heuristic
and without bounds. A peer that is not installed is named and left out, and one that would take
minutes is spared the larger models.
"""

from __future__ import annotations

import heapq
import importlib
import math
import pathlib
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tailpath as tp
from benchmarks.measure import find_grid, gridworld, large_grid

SIZES = (100, 300, 500, 1000)
ALPHA = 0.01
#: The largest grids that a peer solves in about a minute, and the seconds after which a queue is
#: stopped.
LARGEST = {"Storm": 1000, "scipy": 500, "QuantEcon": 100}
PATIENCE = 20.0
LEAST = 'R{"cost"}min=? [F "goal"]'
#: Where `draw` puts its figure.
FIGURE = pathlib.Path(__file__).parents[1] / "docs" / "pictures" / "growth.png"


def run(small: bool = False) -> None:
    storm, quantecon = installed("stormpy"), installed("quantecon")
    distributions(storm, small)
    growth: dict[str, list[float]] = {
        "outcomes": [],
        "risk-neutral optimum": [],
        "evaluation": [],
        "CVaR optimum": [],
    }
    peers: dict[str, Callable[[tp.SSP], Callable[[], float]]] = {"scipy": scipy_iteration}
    if storm:
        peers = {"Storm": lambda ssp: storm_optimum(storm, ssp), **peers}
    if quantecon:
        peers["QuantEcon"] = lambda ssp: quantecon_optimum(quantecon, ssp)
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    other = large_grid(20 if small else 90)  # compiles, or loads what was compiled
    tp.evaluate(other, tp.solve_cvar_exact(other, ALPHA).policy(ALPHA), ALPHA)
    print(
        f"\nsquare grids, obstacles cost 1000, alpha {ALPHA}; processor seconds, with the wall"
        " clock in brackets"
    )
    for size in (10, 20) if small else SIZES:
        one_size(size, growth, peers, seconds)
    exponents(growth)
    draw(growth, seconds, None if small else FIGURE)


def installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed and left out")
        return None


# ---------------------------------------------------------------------- growth


def one_size(
    size: int,
    growth: dict[str, list[float]],
    peers: dict[str, Any],
    seconds: dict[str, list[float]],
) -> None:
    """Everything on one grid: ours, and the risk-neutral optimum by the peers that are quick enough
    for it.
    """
    ssp = large_grid(size)
    ours: dict[str, float] = {}
    line: list[str] = []
    expected = clock(lambda: tp.solve_expected(ssp), "risk-neutral optimum", ours, line)
    best = clock(lambda: tp.solve_cvar_exact(ssp, ALPHA), "CVaR optimum", ours, line)
    costs = clock(lambda: tp.evaluate(ssp, best.policy(ALPHA), ALPHA), "evaluation", ours, line)
    assert abs(costs.cvar(ALPHA) - best.cvar(ALPHA)) <= 1e-9 * best.cvar(ALPHA)
    low, high = expected.bounds
    print(
        f"{size} x {size}, {ssp.n_outcomes:,} outcomes: {', '.join(line)}; width of the bounds"
        f" {(high - low) / high:.0e}, ",
        end="",
    )
    print(
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB", flush=True
    )
    for name, value in {"outcomes": float(ssp.n_outcomes), **ours}.items():
        growth[name].append(value)
    for name, prepare in peers.items():
        if size > LARGEST[name]:
            continue
        solve = prepare(ssp)
        begin = time.process_time()
        value = solve()
        seconds[name].append(time.process_time() - begin)
        ratio = seconds[name][-1] / ours["risk-neutral optimum"]
        print(
            f"  {name}: {seconds[name][-1]:.2f} s, {ratio:.1f} times ours; off by"
            f" {abs(value / expected.cost() - 1):.0e}",
            flush=True,
        )


def clock(
    work: Callable[[], Any], name: str, out_seconds: dict[str, float], out_line: list[str]
) -> Any:
    """Processor seconds, which other work on the machine disturbs least; the line shows the wall
    clock in brackets.
    """
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    out_seconds[name] = time.process_time() - processor
    out_line.append(f"{name} {out_seconds[name]:.2f} ({time.perf_counter() - wall:.2f})")
    return result


def exponents(growth: dict[str, list[float]]) -> None:
    """The slope of log time over log outcomes: 1 is linear."""
    if len(growth["outcomes"]) < 2:
        return
    size = np.log(growth["outcomes"])
    shown = [
        f"{name} {np.polyfit(size, np.log(times), 1)[0]:.2f}"
        for name, times in growth.items()
        if name != "outcomes"
    ]
    print(f"growth with the number of outcomes, fitted exponents: {', '.join(shown)}")


def draw(
    growth: dict[str, list[float]], seconds: dict[str, list[float]], place: pathlib.Path | None
) -> None:
    """Times over outcomes, both logarithmic: ours as lines, peers on the risk-neutral optimum
    dashed. Without a place it is not kept.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    for name, times in growth.items():
        if name != "outcomes":
            axes.plot(growth["outcomes"], times, "o-", label=name)
    for name, times in seconds.items():
        axes.plot(
            growth["outcomes"][: len(times)],
            times,
            "x--",
            alpha=0.7,
            label=f"risk-neutral optimum, {name}",
        )
    axes.set(xscale="log", yscale="log", xlabel="outcomes of the model", ylabel="processor seconds")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    if place is not None:
        figure.savefig(place, dpi=150)
        print(f"drawn: {place.relative_to(place.parents[2])}")
    pyplot.close(figure)


# ---------------------------------------------------------------------- peers


def storm_model(storm: Any, ssp: tp.SSP) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.umb"
        tp.write(ssp, path)
        return storm.build_model_from_umb(str(path))


def storm_optimum(storm: Any, ssp: tp.SSP) -> Callable[[], float]:
    model = storm_model(storm, ssp)
    return lambda: ask(storm, model, LEAST)


def ask(storm: Any, model: Any, formula: str) -> float:
    found = storm.model_checking(
        model, storm.parse_properties(formula)[0], only_initial_states=True
    )
    return float(found.get_value(model.initial_states[0]))


def ask_all(storm: Any, model: Any, formulas: tuple[str, ...]) -> list[float]:
    return [ask(storm, model, formula) for formula in formulas]


def scipy_iteration(ssp: tp.SSP) -> Callable[[], float]:
    from scipy.sparse import csr_array

    matrix = csr_array(
        (ssp.outcome_probability, ssp.outcome_target, ssp.choice_outcomes),
        shape=(ssp.n_choices, ssp.n_states),
    )
    rate = np.add.reduceat(ssp.outcome_probability * ssp.outcome_cost, ssp.choice_outcomes[:-1])
    inner = np.flatnonzero(~ssp.is_goal)

    def solve() -> float:
        value = np.zeros(ssp.n_states)
        change = math.inf
        while change > 1e-6:
            best = np.minimum.reduceat(rate + matrix @ value, ssp.state_choices[inner])
            change = float(np.max(np.abs(best - value[inner]) / best))
            value[inner] = best
        return float(value[ssp.start_index])

    return solve


def quantecon_optimum(quantecon: Any, ssp: tp.SSP) -> Callable[[], float]:
    from scipy.sparse import csr_matrix, vstack

    goal = np.flatnonzero(ssp.is_goal)
    rate = np.add.reduceat(ssp.outcome_probability * ssp.outcome_cost, ssp.choice_outcomes[:-1])
    rows = csr_matrix(
        (ssp.outcome_probability, ssp.outcome_target, ssp.choice_outcomes),
        shape=(ssp.n_choices, ssp.n_states),
    )
    stay = csr_matrix(
        (np.ones(len(goal)), (np.arange(len(goal)), goal)), shape=(len(goal), ssp.n_states)
    )
    problem = quantecon.markov.DiscreteDP(
        np.append(-rate, np.zeros(len(goal))),
        vstack([rows, stay], format="csr"),
        1 - 1e-6,
        np.append(ssp.choice_state, goal),
        np.append(ssp.choice_action, np.zeros(len(goal), dtype=np.int64)),
    )
    return lambda: -float(problem.solve(method="policy_iteration").v[ssp.start_index])


# ---------------------------------------------------------------------- distributions


def distributions(storm: Any, small: bool) -> None:
    """A whole distribution with its mean, end to end, against Storm's probability of one threshold
    and its mean, and against a plain queue.
    """
    problem = gridworld(small)
    ssp, (size, grid) = tp.domains.gridworld(problem), find_grid(small)
    cases: dict[str, tuple[tp.SSP, tp.Policy, float]] = {
        f"25-atom policy of {problem}": (
            ssp,
            tp.solve_cvar_quantile(ssp, tp.log_atoms(1e-3, 25)).policy(1e-3),
            1e-3,
        ),
        f"risk-neutral policy of {size}": (grid, tp.solve_expected(grid).policy, ALPHA),
    }
    for name, (model, policy, alpha) in cases.items():
        costs = tp.evaluate(model, policy, alpha)
        works: dict[str, Callable[[], Any]] = {"ours": partial(tp.evaluate, model, policy, alpha)}
        chain = tp.unroll(model, policy)
        if storm:
            built = storm_model(storm, as_model(chain))
            assert chain.unit is not None
            bounded = f'Pmin=? [F{{"cost"}}<={round(costs.var(alpha) / float(chain.unit))} "goal"]'
            works["Storm"] = partial(ask_all, storm, built, (bounded, LEAST))
        repeats = 20 if chain.n < 10_000 else 3
        seconds = least_of(works, repeats, in_turns=False)
        print(
            f"{name}: {chain.n:,} pairs, ours {1e3 * seconds['ours']:.1f} ms end to end (processor"
            " time)",
            flush=True,
        )
        if storm:
            off = abs(works["Storm"]()[0] - costs.cdf(costs.var(alpha)))
            print(
                f"  Storm, one threshold and the mean, off by {off:.0e}: {beside(seconds)} each in"
                " a row",
                end="",
            )
            print(f"; {beside(least_of(works, repeats, in_turns=True))} in turns", flush=True)
        begin = time.process_time()
        arrived = plain_queue(chain, alpha, 1.0 if small else PATIENCE)
        queue = time.process_time() - begin
        ended = "" if arrived >= 1 - alpha else "more than "
        print(
            f"  a plain queue in Python: {ended}{queue:.2f} s, {queue / seconds['ours']:.0f} times"
            " ours",
            flush=True,
        )


def least_of(works: dict[str, Callable[[], Any]], repeats: int, in_turns: bool) -> dict[str, float]:
    """The least processor seconds of each work: one after the other, or in turns, so that each
    finds the other's data in the caches.
    """
    least = dict.fromkeys(works, math.inf)
    order = list(works) * repeats
    for name in order if in_turns else sorted(order, key=list(works).index):
        begin = time.process_time()
        works[name]()
        least[name] = min(least[name], time.process_time() - begin)
    return least


def beside(seconds: dict[str, float]) -> str:
    """Both times, and the ratio."""
    return (
        f"{1e3 * seconds['Storm']:.1f} ms against {1e3 * seconds['ours']:.1f} ms,"
        f" {seconds['Storm'] / seconds['ours']:.1f} times ours,"
    )


def as_model(chain: tp.CostChain) -> tp.SSP:
    """A chain as a model with one choice per node, costs in units."""
    assert chain.level is not None
    return tp.SSP(
        state_choices=np.append(np.arange(chain.n + 1), chain.n),
        choice_outcomes=chain.row_start,
        outcome_target=chain.target,
        outcome_probability=chain.probability,
        outcome_cost=chain.level.astype(np.float64),
        choice_action=np.zeros(chain.n, dtype=np.int32),
        is_goal=np.append(np.zeros(chain.n, dtype=np.bool_), True),
        start_index=chain.start,
        states=range(chain.n + 1),
        actions=["on"],
    )


def plain_queue(chain: tp.CostChain, alpha: float, patience: float) -> float:
    """ForPECVaR by a heap of (cost, node) and a dictionary of masses, until 1 - alpha has arrived;
    returns what has, or what had when time was up.
    """
    assert chain.level is not None
    edges = [
        list(
            zip(
                *(
                    array[first:last].tolist()
                    for array in (chain.target, chain.probability, chain.level)
                ),
                strict=True,
            )
        )
        for first, last in zip(
            chain.row_start[:-1].tolist(), chain.row_start[1:].tolist(), strict=True
        )
    ]
    mass, queue, arrived, end = (
        {(0, chain.start): 1.0},
        [(0, chain.start)],
        0.0,
        time.perf_counter() + patience,
    )
    bound = 1 - alpha
    while queue and time.perf_counter() < end:
        cost, node = heapq.heappop(queue)
        here = mass.pop((cost, node))
        if node == chain.n:
            arrived += here
            if arrived >= bound:
                break
            continue
        for target, probability, level in edges[node]:
            key = (cost + level, target)
            if key not in mass:
                mass[key] = 0.0
                heapq.heappush(queue, key)
            mass[key] += here * probability
    return arrived

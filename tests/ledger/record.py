"""The questions of the ledger, and the book that keeps them with their answers.

A line of the book is `[model, verb, arguments, answer]`. What a question was made of (deadlines,
limits, pairs of state and memory) stands in its arguments, so that any version can be asked.

    python -m tests.ledger.record     writes the book anew: only from the commit to compare with
"""

import gzip
import heapq
import itertools
import json
import math
import pathlib
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import tailpath as tp
from tests.ledger.models import MODELS
from tests.ledger.verbs import ALPHAS, Case, answer

BOOK = pathlib.Path(__file__).with_name("ledger.jsonl.gz")
Question = tuple[str, list[Any]]
Entry = tuple[str, list[Any], dict[str, Any]]
BIG = ("large", "wide")
#: Frontiers and limits on CVaR look at all budgets up to that of the risk-neutral policy.
MAX_BUDGETS = 500
#: Tables of everything up to a deadline, as long as they are made in a second.
MAX_LEVELS = 50_000
#: A limit that always holds: beside another one, the optimum is found by columns, the general way.
EMPTY = "late(0) <= 1"


def questions(case: Case, size: str) -> Iterator[Question]:
    """All that is asked about a model of this size."""
    yield from [("model", []), ("expected", [1.0]), ("arrival", [])]
    yield from decisions(case, ["neutral"], 300)
    if size == "tall":
        return
    solved = [0.01, 0.1] if size in BIG else [0.001, 0.01, 0.1, 0.5]
    pairs = [(a, b) for a in solved for b in solved if b == a or a == solved[0]]
    yield from (("exact", [a, b, {}]) for a, b in pairs)
    yield from decisions(case, ["exact 0.01", "exact 0.1"], 1000)
    yield from evaluations(case, size)
    if size == "wide":
        return
    yield from deadlines(case, size)
    if size != "large":
        yield from plans(case)
        yield from limits(case, size)
        yield from ends(case)


def evaluations(case: Case, size: str) -> Iterator[Question]:
    if size in BIG:
        yield from (("evaluate", [policy, 0.01, {}]) for policy in ("neutral", "exact 0.01"))
        yield from (("simulate", [policy, 1]) for policy in ("neutral", "exact 0.01"))
        return
    every = ["neutral", "mixed", "memory", "exact 0.01", "exact 0.1"]
    for policy in [*every, "lexicographic 0.01", "atoms 0.01"]:
        yield "evaluate", [policy, 0.001, {}]
        yield "simulate", [policy, 1]
    for policy in ("mixed", "exact 0.1"):
        yield "evaluate", [policy, 0.1, {"engine": "queue", "max_nodes": 5000}]
        yield "evaluate", [policy, 0.01, {"heuristic": "zero"}]
        yield "deviation", [policy]
        yield "trace", [policy, 7]
    for question, most in (
        (("worst_runs", ["mixed", 0.1]), 30_000),
        (("worst_runs", ["exact 0.1", 0.1]), 30_000),
        (("worst_runs", ["neutral", 0.01]), 30_000),
        (("parting", ["neutral", "exact 0.1", 0.1]), 30_000),
    ):
        if budgets(case) * case.ssp.n_states <= most:
            yield question
    yield "expected", [0.9]
    yield "evaluate", ["mixed", 0.1, {"gamma": 0.9, "max_nodes": 5000}]
    yield "evaluate", ["history", 0.1, {"max_nodes": 300}]


def deadlines(case: Case, size: str) -> Iterator[Question]:
    """Deadlines up to the VaR at 0.01 of the best policy, or what a policy of chance can keep."""
    scale = typical(case)
    last = scale * 1.25
    how = {} if case.ssp.cost_unit else {"delta": scale / 256}
    for share in (0.5, 1, 1.25) if size == "large" else (0.25, 0.5, 0.75, 1, 1.25):
        yield "on_time", [last, scale * share, how]
    if size == "large" or budgets(case) > MAX_LEVELS:
        return
    yield from (("least_var", [last, a]) for a in ALPHAS)
    for objective in (f"late({scale!r})", f"shortfall({scale / 2!r})", "var(0.1)", "cvar(0.05)"):
        yield "solve", [objective, how]
    for objective in ("0.7 * mean + 0.3 * cvar(0.1)", f"0.1 * mean + late({scale!r})"):
        yield "solve", [objective, how]
    yield "solve", [f"loss({scale / 4!r}:0, {scale / 2!r}:3, {scale / 2!r}:7, slope 2)", how]
    yield from decisions(case, [f"on time {scale!r}"], 300)
    if how:
        yield from (("exact", [0.01, a, how]) for a in (0.1, 0.01))
    else:
        yield from (("on_time", [math.inf, t, {}]) for t in (scale, math.inf))


def plans(case: Case) -> Iterator[Question]:
    yield from (("exact", [0.01, a, {"lexicographic": True}]) for a in (0.1, 0.01))
    yield from decisions(case, ["lexicographic 0.01", "atoms 0.01"], 300)
    yield from (("planner", [name]) for name in ("quantile", "interpolation"))
    if budgets(case) * case.ssp.n_states <= 3000:  # loops in Python
        yield "method", ["nested", 0.1]


def limits(case: Case, size: str) -> Iterator[Question]:
    """Least means at risks from the least one up, by the frontier and under limits."""
    scale, unit = typical(case), case.ssp.cost_unit
    if unit is None or budgets(case) > MAX_BUDGETS:
        return
    half = float(unit * round(budgets(case) / 2))
    for measure in ("cvar(0.05)", "cvar(0.2)", f"late({scale!r})", f"shortfall({half!r})"):
        try:
            least = tp.solve(case.ssp, measure).value
            most = max(tp.solve(case.ssp, "mean").risk(measure), 1.2 * least)
        except tp.TailpathError:
            continue
        if most > 10 * scale:
            continue
        yield "frontier_ends", [measure]
        for share in (0.1, 0.35, 0.6, 0.85) if size == "small" else (0.1, 0.6):
            risk = least + share * (most - least)
            yield "frontier", [measure, risk]
            yield "limited", ["mean", [f"{measure} <= {risk!r}"]]
            if measure.startswith("cvar"):
                yield "limited", ["mean", [f"{measure} <= {risk!r}", EMPTY]]
    yield "limited", [f"late({scale!r})", [f"mean <= {1.5 * scale!r}"]]


def ends(case: Case) -> Iterator[Question]:
    """Models whose goal is made sure, where they stay small."""
    scale = typical(case)
    if case.ssp.n_states <= 100 and budgets(case) <= MAX_LEVELS:
        yield "ending", ["given_arrival", []]
        yield "ending", ["give_up", [round(scale) + 1]]
        yield "ending", ["within", [20, round(scale) + 1]]


def decisions(case: Case, policies: Iterable[str], most: int) -> Iterator[Question]:
    for policy in policies:
        try:
            yield "decide", [policy, packed(likeliest(case, policy, most))]
        except tp.TailpathError:
            continue


def typical(case: Case) -> float:
    """A total cost that is neither sure nor rare."""
    try:
        cost = case.exact(0.01).var(0.01)
    except tp.TailpathError:
        cost = tp.evaluate(case.ssp, case.policy("mixed"), 0.5).var(0.5)
    return float(cost) if 0 < cost < math.inf else 16.0


def budgets(case: Case) -> float:
    """How many budgets there are up to a typical cost."""
    return typical(case) / float(case.ssp.cost_unit or 1)


# ---------------------------------------------------------------------- pairs of state and memory


def likeliest(case: Case, policy: str, most: int) -> list[tuple[int, Any]]:
    """The pairs that the most probable beginnings of runs lead to: best-first over the model."""
    index = {state: s for s, state in enumerate(case.ssp.states)}
    machine, start = case.policy(policy), case.ssp.start
    waiting: list[Any] = [(-1.0, 0, start, machine.start(start))]
    found: dict[tuple[int, Any], None] = {}
    count = itertools.count(1)
    while waiting and len(found) < most:
        chance, _, state, memory = heapq.heappop(waiting)
        if (index[state], memory) in found or state not in case.rows:
            continue
        found[index[state], memory] = None
        action = machine.action(state, memory)
        for target, p, cost in case.rows[state][action]:
            if target in case.rows:
                after = machine.remember(memory, state, action, cost, target)
                heapq.heappush(waiting, (chance * p, next(count), target, after))
    return list(found)


def packed(pairs: list[tuple[int, Any]]) -> list[Any]:
    """State by state, the memories as steps from one to the next: small in the book."""
    steps: dict[int, list[Any]] = {}
    last: dict[int, int] = {}
    for s, memory in sorted(pairs, key=lambda pair: (pair[0], pair[1] or 0)):
        steps.setdefault(s, []).append(None if memory is None else memory - last.get(s, 0))
        last[s] = memory
    return [[s, every] for s, every in steps.items()]


# ---------------------------------------------------------------------- the book


def read_book() -> dict[str, list[Entry]]:
    """Questions and answers, by model. Rows of `table` are left out: those of the book had the
    probability of ever being there, and now have how often a run is."""
    book: dict[str, list[Entry]] = {}
    for line in gzip.decompress(BOOK.read_bytes()).decode().splitlines():
        name, *entry = json.loads(line)
        if entry[0] != "table":
            book.setdefault(name, []).append(tuple(entry))
    return book


def main(names: list[str]) -> None:
    book = read_book() if names else {}
    for name in names or MODELS:
        begin, case, book[name] = time.perf_counter(), Case(MODELS[name].build()), []
        for question in questions(case, MODELS[name].size):
            found = answer(case, *question)
            # Where it gave up is no answer to keep: another version may go on, or end sooner.
            if found.get("refused") != "LimitExceededError":
                book[name].append((*question, found))
        took = time.perf_counter() - begin
        print(f"{name}: {len(book[name])} answers, {took:.1f} s", flush=True)
    lines = (json.dumps([name, *entry]) for name, entries in book.items() for entry in entries)
    BOOK.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])

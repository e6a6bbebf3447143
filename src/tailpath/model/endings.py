"""Models whose goal is certain, made from models in which it is not: by giving up at a price (the
finite-penalty model), or within a number of steps. The third way, `given_arrival`, needs the
largest probability of arriving and is one of the solvers (`solvers/arrival.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.errors import ModelError, OptionError
from tailpath.graph import FloatArray, IntArray
from tailpath.model.cost_units import (
    as_fraction,
    common_unit,
    exact_cost,
    exact_number,
    refused_unless_number,
)
from tailpath.model.interval import IntervalSSP, Model, columns_of, rebuilt, underlying_ssp
from tailpath.model.outcomes import OutcomeColumns
from tailpath.model.ssp import SSP, Name, Origin
from tailpath.options import check_integer, takes_model
from tailpath.texts import count

#: The memory in bytes for a pair of state and step, and for an outcome, while the model is built;
#: and the most in all.
PAIR_BYTES, OUTCOME_BYTES = 100, 130
MAX_BYTES = 2**32


@takes_model
def give_up(ssp: Model, cost: Any) -> Model:
    """The model with one more choice in every state, `give up`, which ends the run at a price.

    Then every policy can arrive. The choice leads to a goal of its own, `gave up`.

    Parameters
    ----------
    ssp : SSP
        The model.
    cost : number, decimal or fraction
        The price, added to what the run has cost; negative only if some cost is.

    Returns
    -------
    SSP
        The new model.

    Raises
    ------
    OptionError
        If the price is negative or not a finite number.

    Examples
    --------
    >>> tp.give_up(ssp, 25).goals
    ('work', 'gave up')
    >>> tp.solve_cvar_exact(tp.give_up(ssp, 25), 0.1).cvar(0.1)
    25.0
    """
    inside = underlying_ssp(ssp)
    end_cost = exact_number(cost, "the price of giving up", signed=inside.signed)
    ending, action = fresh_name("gave up", inside.states), fresh_name("give up", inside.actions)
    state, origin = np.flatnonzero(~inside.is_goal), inside.origin
    end = np.full(len(state), inside.n_states)
    rows = columns_of(ssp).extended(state, len(inside.actions), end, float(end_cost), 1.0)
    note = f"giving up costs {float(end_cost):g}, in any state; the run then ends in {ending!r}"
    return rebuilt(
        ssp,
        rows,
        is_goal=np.append(inside.is_goal, True),
        states=(*inside.states, ending),
        actions=(*inside.actions, action),
        exact_unit=_unit(inside, end_cost),
        geometry=inside.geometry and inside.geometry.of([*range(inside.n_states), -1]),
        notes=(*inside.notes, note),
        origin=origin and Origin(origin.states, np.append(origin.index, -1)),
    )


@takes_model
def within(
    ssp: Model, steps: int, otherwise: Any = None, *, gamma: Any = 1, max_pairs: int | None = None
) -> Model:
    """The model with at most `steps` steps: its states are pairs `(state, steps taken)`.

    A run that has not arrived by then is `out of time`. Policies for the model itself can be used
    (`tailpath.policy`).

    Parameters
    ----------
    ssp : SSP
        The model.
    steps : int, 1 or more
        The most steps.
    otherwise : number, optional
        The price at which a run out of time ends, negative only if some cost is. Without it, such a
        run never arrives, so that `unreached` of a distribution is the probability of being late.
    gamma : number in (0, 1]
        The discount: the costs of step t, counted from 0, are multiplied by gamma^t, exactly, so
        that all solvers can be used.
    max_pairs : int, optional
        The largest number of pairs; by default as many as fit into 4 GiB.

    Returns
    -------
    SSP
        The new model, with the pairs that can be reached.

    Raises
    ------
    OptionError
        If an argument lies outside its range.
    ModelError
        If there are more than `max_pairs` pairs.

    Examples
    --------
    >>> tries = tp.read("textbook:geometric")
    >>> tp.evaluate(tp.within(tries, 2), {"trying": "try"}, 1).unreached
    0.5625
    """
    inside = underlying_ssp(ssp)
    refusal = OptionError(f"gamma must lie in (0, 1], not {gamma!r}")
    factor = refused_unless_number(gamma, refusal)
    if not 0 < factor <= 1:
        raise refusal
    steps, end_cost = check_integer(steps, "the number of steps", 1), None
    if otherwise is not None:
        end_cost = exact_number(otherwise, "the price of being late", signed=inside.signed)
    if max_pairs is None:
        per_pair = PAIR_BYTES + OUTCOME_BYTES * ssp.n_outcomes / ssp.n_states
        max_pairs = int(MAX_BYTES / per_pair)
    if inside.is_goal[inside.start_index]:
        return ssp
    layers, goals = _layers(inside, steps, max_pairs), np.flatnonzero(inside.is_goal)
    taken: list[Name] = [
        *((inside.states[s], step) for step, layer in enumerate(layers) for s in layer.tolist()),
        *(inside.states[goal] for goal in goals.tolist()),
    ]
    ending, late = fresh_name("out of time", taken), len(taken)
    finish = [] if end_cost is None else [fresh_name("ended late", (*taken, ending))]
    pairs = np.concatenate(layers)
    base = inside.origin or Origin(inside.states, np.arange(inside.n_states))
    own = np.append(base.index[np.append(pairs, goals)], [-1] * (1 + len(finish)))
    is_goal = np.arange(len(own)) >= len(pairs)
    is_goal[late] = False
    powers = [factor**step for step in range(len(layers) if factor != 1 else 1)]
    # Out of time a run pays its cost and ends, or loops.
    unit = inside.cost_unit
    loop = unit if unit is not None else np.abs(inside.outcome_cost).max()
    end = np.array([late if end_cost is None else late + 1])
    last = float(loop if end_cost is None else end_cost)
    rows = _rows_by_step(ssp, layers, factor)
    return rebuilt(
        ssp,
        rows.extended(late, len(inside.actions), end, last, 1.0),
        is_goal=is_goal,
        start_index=0,
        states=(*taken, ending, *finish),
        actions=(*inside.actions, fresh_name("pay" if finish else "wait", inside.actions)),
        exact_unit=_unit(inside, end_cost or Fraction(0), powers),
        notes=(*inside.notes, *_notes_of_limit(steps, end_cost, factor)),
        geometry=None,
        origin=Origin(base.states, own),
    )


def _notes_of_limit(steps: int, end_cost: Fraction | None, factor: Fraction) -> Iterator[str]:
    if factor != 1:
        yield f"the costs of step t are multiplied by {float(factor):g}^t"
    what = "never arrives" if end_cost is None else f"pays {float(end_cost):g}"
    yield (
        f"a run that has not arrived after {count(steps, 'step')} {what}; states are pairs (state,"
        " steps taken)"
    )


def _rows_by_step(
    model: SSP | IntervalSSP, layers: list[IntArray], factor: Fraction
) -> OutcomeColumns:
    """The outcomes of pairs (state, step), which lead to a pair of the next layer, a goal, or out
    of time: goals are numbered after the pairs, and out of time comes last.
    """
    ssp, pairs = underlying_ssp(model), np.concatenate(layers)
    step_of_pair = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])
    outcome, pair = ssp.by_state.edges(pairs), ssp.by_state.restrict(pairs).source
    rows, step = columns_of(model).only(outcome), step_of_pair[pair]
    position = np.full(ssp.n_states, len(pairs) + np.count_nonzero(ssp.is_goal))
    position[ssp.is_goal] = len(pairs) + np.arange(np.count_nonzero(ssp.is_goal))
    goes_on = (step + 1 < len(layers)) & ~ssp.is_goal[rows.target]
    number = pairs + ssp.n_states * step_of_pair
    next_pair = np.searchsorted(number, rows.target + ssp.n_states * (step + 1))
    target = np.where(goes_on, next_pair, position[rows.target])
    cost = _discounted(ssp, rows.cost, step, factor)
    return rows._replace(state=pair, target=target, cost=cost)


def _layers(ssp: SSP, steps: int, max_pairs: int) -> list[IntArray]:
    """The states, without goals, that can be entered after exactly 0, 1, .. steps, in index order.

    Once a layer follows itself, all later layers are the same.
    """
    layer, by_state = np.array([ssp.start_index], dtype=np.int64), ssp.by_state
    on_the_way = (
        by_state.reachable(ssp.start_index)[by_state.source] & ~ssp.is_goal[by_state.target]
    )
    endless = by_state.only(on_the_way).acyclic_order() is None
    layers, pairs = [layer], steps if endless and steps > max_pairs else 1
    while len(layers) < steps and pairs <= max_pairs:
        reached = np.zeros(ssp.n_states, dtype=np.bool_)
        reached[by_state.restrict(layer).target] = True
        before, layer = layer, np.flatnonzero(reached & ~ssp.is_goal)
        if not len(layer):
            break
        more = steps - len(layers) if np.array_equal(layer, before) else 1
        pairs += more * len(layer)
        layers += [layer] * (more if pairs <= max_pairs else 0)
    if pairs > max_pairs:
        raise ModelError(
            f"{steps} steps make more than {max_pairs} pairs of state and step (max_pairs=)"
        )
    return layers


def _unit(
    ssp: SSP, end_cost: Fraction, factors: Sequence[Fraction] = (Fraction(1),)
) -> Fraction | None:
    """The exact unit of one more cost and of the model's costs times each factor; None if the
    model's costs have none.
    """
    if ssp.cost_unit is None:
        return None
    costs = [level * ssp.cost_unit for level in np.unique(ssp.outcome_level).tolist()]
    return common_unit(
        [end_cost, *(cost * factor for factor in dict.fromkeys(factors) for cost in costs)]
    )


def _discounted(ssp: SSP, costs: FloatArray, step: IntArray, factor: Fraction) -> FloatArray:
    if factor == 1:
        return costs
    found, position = np.unique(costs, return_inverse=True)
    exact = [exact_cost(cost, ssp.cost_unit) for cost in found.tolist()]
    steps = range(int(step.max(initial=0)) + 1)
    scaled = [[float(cost * factor**t) for cost in exact] for t in steps]
    return np.array(scaled)[step, position]


def ending_chance(gamma: float) -> float:
    """1 - gamma for gamma as it is written: of a difference of floats, little would be right with
    0.999999999.
    """
    return float(1 - as_fraction(gamma))


def ended_by_chance(ssp: SSP, gamma: float) -> SSP:
    """The model in which every step is the last with probability 1 - gamma, after its cost: its
    expected costs are the discounted ones.

    States and choices keep their numbers; runs that end early are in one more goal.
    """
    rows, goes_on = columns_of(ssp), ~ssp.is_goal[ssp.outcome_target]
    p = rows.probabilities[0]
    ends = rows.only(goes_on)
    ends = ends._replace(target=np.full(len(ends.state), ssp.n_states))
    state, action, target, cost = map(np.append, rows[:4], ends[:4])
    shares = np.append(np.where(goes_on, gamma * p, p), ending_chance(gamma) * p[goes_on])
    return rebuilt(
        ssp,
        OutcomeColumns(state, action, target, cost, (shares,)),
        is_goal=np.append(ssp.is_goal, True),
        states=range(ssp.n_states + 1),
        geometry=None,
        origin=None,
        # Both factors and their product are rounded.
        probability_error=ssp.probability_error + 2 * float(np.finfo(np.float64).eps),
    )


def fresh_name(name: str, taken: Container[Name]) -> str:
    while name in taken:
        name += "'"
    return name

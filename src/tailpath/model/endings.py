"""Models whose goal is sure, made from models in which it is not: another way to end, or an end of
time.

    give_up(ssp, cost)                 one more choice in every state, at a price, that ends the run
                                       (known as the finite-penalty model)
    within(ssp, steps, otherwise=)     the product with a counter of steps; what has not arrived in
                                       time pays a price, or has not arrived

The third way, `given_arrival`, needs the largest probability of arriving and lives with the solvers
(`solvers/arrival.py`).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import cycle, islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import ModelError, OptionError
from tailpath.graph import Array, FloatArray, IntArray, Transitions, offsets_from_lengths
from tailpath.model.builders import arrays_from_rows, outcomes_of_rows
from tailpath.model.cost_units import as_fraction, common_unit, refused_unless_number
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP, Geometry, Name, Origin

Model = TypeVar("Model", SSP, IntervalSSP)
#: What a product of state and step takes by pair and by outcome while it is built, in bytes, and
#: what it may take in all.
PAIR_BYTES, OUTCOME_BYTES = 100, 130
MOST_BYTES = 2**32


def give_up(ssp: Model, cost: Any) -> Model:
    """The model with one more choice in every state, `give up`, which ends the run at a price.

    Then every goal is sure. The choice leads to a goal of its own, `gave up`.

    Parameters
    ----------
    ssp : SSP
        The model.
    cost : number, decimal or fraction
        The price, paid on top of what the run has cost; below 0 only where some cost is.

    Returns
    -------
    SSP
        The new model.

    Raises
    ------
    OptionError
        If the price is negative or no finite number.

    Examples
    --------
    >>> tp.give_up(ssp, 25).goals
    ('work', 'gave up')
    >>> tp.solve_cvar_exact(tp.give_up(ssp, 25), 0.1).cvar(0.1)
    25.0
    """
    if isinstance(ssp, IntervalSSP):
        inside = give_up(ssp.inside, cost)
        # Outcomes keep their order, and those of giving up stand among them.
        outcome = np.full(inside.n_outcomes, ssp.n_outcomes)
        old = inside.choice_action[inside.outcome_choice] < len(ssp.inside.actions)
        outcome[old] = np.arange(ssp.n_outcomes)
        return _with_intervals(ssp, inside, outcome)
    return _given_up(ssp, cost)


def _given_up(ssp: SSP, cost: Any) -> SSP:
    price = _price(cost, "the price of giving up", ssp.signed)
    ending, action = fresh_name("gave up", ssp.states), fresh_name("give up", ssp.actions)
    state = np.flatnonzero(~ssp.is_goal)
    count = len(state)
    arrays = arrays_from_rows(
        np.append(ssp.by_state.source, state),
        np.append(ssp.choice_action[ssp.outcome_choice], np.full(count, len(ssp.actions))),
        np.append(ssp.outcome_target, np.full(count, ssp.n_states)),
        np.append(ssp.outcome_probability, np.ones(count)),
        np.append(ssp.outcome_cost, np.full(count, float(price))),
        n_states=ssp.n_states + 1,
        merge=False,
    )
    return SSP(
        **arrays,
        is_goal=np.append(ssp.is_goal, True),
        start_index=ssp.start_index,
        states=(*ssp.states, ending),
        actions=(*ssp.actions, action),
        exact_unit=_unit(ssp, price),
        geometry=_more_positions(ssp.geometry),
        notes=(
            *ssp.notes,
            f"giving up costs {float(price):g}, in any state; the run then ends in {ending!r}",
        ),
        origin=ssp.origin and Origin(ssp.origin.states, np.append(ssp.origin.index, -1)),
        probability_error=ssp.probability_error,
    )


def within(
    ssp: Model, steps: int, otherwise: Any = None, *, gamma: Any = 1, max_pairs: int | None = None
) -> Model:
    """The model with at most `steps` steps: its states are pairs `(state, steps taken)`.

    A run that has not arrived after so many steps is `out of time`. Policies for the model itself
    are understood (`tailpath.policy`).

    Parameters
    ----------
    ssp : SSP
        The model.
    steps : int, 1 or more
        The most steps.
    otherwise : number, optional
        The price at which a run out of time ends, below 0 only where some cost is. Without it, it
        never arrives, so that `unreached` of its distribution is the probability of being late.
    gamma : number in (0, 1]
        The discount: the costs of step t, counted from 0, are multiplied by gamma^t, exactly; one
        that all solvers can take.
    max_pairs : int, optional
        The most pairs; more are refused. By default as many as fit into 4 GiB.

    Returns
    -------
    SSP
        The new model, as far as its pairs can be reached.

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
    if max_pairs is None:
        per_pair = PAIR_BYTES + OUTCOME_BYTES * ssp.n_outcomes / ssp.n_states
        max_pairs = int(MOST_BYTES / per_pair)
    if isinstance(ssp, IntervalSSP):
        inside = within(ssp.inside, steps, otherwise, gamma=gamma, max_pairs=max_pairs)
        if inside is ssp.inside:
            return ssp
        outcomes = [
            ssp.inside.by_state.edges(layer) for layer in _layers(ssp.inside, int(steps), max_pairs)
        ]
        return _with_intervals(ssp, inside, np.append(np.concatenate(outcomes), ssp.n_outcomes))
    return _limited(ssp, steps, otherwise, gamma, max_pairs)


def _limited(ssp: SSP, steps: int, otherwise: Any, gamma: Any, max_pairs: int) -> SSP:
    factor = _discount(gamma)
    if not isinstance(steps, (int, np.integer)) or steps < 1:
        raise OptionError(
            f"the number of steps must be a whole number of at least 1, not {steps!r}"
        )
    price = None if otherwise is None else _price(otherwise, "the price of being late", ssp.signed)
    if ssp.is_goal[ssp.start_index]:
        return ssp
    layers, goals = _layers(ssp, int(steps), max_pairs), np.flatnonzero(ssp.is_goal)
    first = offsets_from_lengths(np.array([len(layer) for layer in layers]))
    late, finish = int(first[-1]) + len(goals), int(price is not None)
    is_goal = np.zeros(late + 1 + finish, dtype=np.bool_)
    is_goal[first[-1] :] = True
    is_goal[late] = False
    names = [(ssp.states[s], step) for step, layer in enumerate(layers) for s in layer.tolist()]
    taken = (*names, *(ssp.states[g] for g in goals.tolist()))
    ending = fresh_name("out of time", taken)
    base = ssp.origin or Origin(ssp.states, np.arange(ssp.n_states))
    index = np.concatenate(
        [*(base.index[layer] for layer in layers), base.index[goals], np.full(1 + finish, -1)]
    )
    powers = [factor**step for step in range(len(layers) if factor != 1 else 1)]
    return SSP(
        **_rows_by_step(ssp, layers, first, price, factor),
        is_goal=is_goal,
        start_index=0,
        states=(*taken, ending, *([fresh_name("ended late", (*taken, ending))] if finish else [])),
        actions=(*ssp.actions, fresh_name("pay" if finish else "wait", ssp.actions)),
        exact_unit=_unit(ssp, price or Fraction(0), powers),
        notes=(*ssp.notes, *_notes_of_limit(steps, price, factor)),
        origin=Origin(base.states, index),
        probability_error=ssp.probability_error,
    )


def _notes_of_limit(steps: int, price: Fraction | None, factor: Fraction) -> Iterator[str]:
    """What a limit of steps changes."""
    if factor != 1:
        yield f"the costs of step t are multiplied by {float(factor):g}^t"
    what = "never arrives" if price is None else f"pays {float(price):g}"
    yield (
        f"a run that has not arrived after {steps} steps {what}; states are pairs (state, steps"
        " taken)"
    )


def _rows_by_step(
    ssp: SSP, layers: list[IntArray], first: IntArray, price: Fraction | None, factor: Fraction
) -> dict[str, Any]:
    """The arrays of pairs (state, step), then of goals; at last `out of time`, which pays the price
    and ends, or loops.
    """
    goals = np.flatnonzero(ssp.is_goal)
    late = int(first[-1]) + len(goals)
    position_of_goal = np.full(ssp.n_states, -1, dtype=np.int64)
    position_of_goal[goals] = first[-1] + np.arange(len(goals))
    rows, outcome, step_of = _product(ssp, layers, first)
    position = np.where(ssp.is_goal, position_of_goal, late)[rows.target]
    loop = ssp.cost_unit if ssp.cost_unit is not None else np.abs(ssp.outcome_cost).max()
    finish = late if price is None else late + 1
    return arrays_from_rows(
        np.append(rows.source, late),
        np.append(ssp.choice_action[ssp.outcome_choice[outcome]], len(ssp.actions)),
        np.append(_positions(ssp, layers, first, rows.target, step_of, position), finish),
        np.append(rows.probability, 1.0),
        np.append(
            rows.cost if factor == 1 else _discounted(ssp, rows.cost, step_of, factor),
            float(loop if price is None else price),
        ),
        n_states=finish + 1,
        merge=False,
    )


def _with_intervals(model: IntervalSSP, inside: SSP, outcome: IntArray) -> IntervalSSP:
    """The intervals of a model on one made of it: `outcome` is the outcome behind each, or the
    number of all of them where it is sure.
    """
    low, high = (np.append(end, 1.0)[outcome] for end in (model.low, model.high))
    estimate = None if model.estimate is None else np.append(model.estimate, 1.0)[outcome]
    return IntervalSSP(inside, low, high, estimate, model.confidence)


def _layers(ssp: SSP, steps: int, max_pairs: int) -> list[IntArray]:
    """The states but goals that can be entered after exactly 0, 1, .. steps, each layer rising.

    Once a layer comes again all that follow do, so that a model of few states needs few looks.
    """
    layers = [np.array([ssp.start_index], dtype=np.int64)]
    met: dict[bytes, int] = {}
    by_state, pairs = ssp.by_state, 1
    while len(layers) < steps and pairs <= max_pairs:
        before = met.setdefault(hashlib.sha256(layers[-1].tobytes()).digest(), len(layers) - 1)
        if before < len(layers) - 1:
            period, missing = layers[before + 1 :], steps - len(layers)
            pairs += missing * min(map(len, period))
            if pairs <= max_pairs:
                layers += islice(cycle(period), missing)
            break
        reached = np.zeros(ssp.n_states, dtype=np.bool_)
        reached[by_state.restrict(layers[-1]).target] = True
        layer = np.flatnonzero(reached & ~ssp.is_goal)
        if not len(layer):
            break
        layers.append(layer)
        pairs += len(layer)
    if max(pairs, sum(map(len, layers))) > max_pairs:
        raise ModelError(
            f"{steps} steps make more than {max_pairs} pairs of state and step (max_pairs=)"
        )
    return layers


def _product(
    ssp: SSP, layers: list[IntArray], first: IntArray
) -> tuple[Transitions, IntArray, NDArray[np.int32]]:
    """The outcomes of all pairs, with a row for each, whose targets are states; the model's outcome
    behind each, and its step.
    """
    pairs, by_state = np.concatenate(layers), ssp.by_state
    rows = by_state.restrict(pairs)
    step = np.repeat(np.arange(len(layers), dtype=np.int32), np.diff(first))
    return rows, by_state.edges(pairs), step[rows.source]


def _positions(
    ssp: SSP,
    layers: list[IntArray],
    first: IntArray,
    target: Array,
    step: Array,
    position: IntArray,
) -> IntArray:
    """Where each outcome leads: to its target's pair in the next layer, or, from the last one and
    to goals, to its `position`.
    """
    on = np.flatnonzero((step + 1 < len(layers)) & ~ssp.is_goal[target])
    key = np.concatenate(layers) + ssp.n_states * np.repeat(np.arange(len(layers)), np.diff(first))
    position[on] = np.searchsorted(key, target[on] + ssp.n_states * (step[on] + np.int64(1)))
    return position


def _price(cost: Any, what: str, signed: bool) -> Fraction:
    """A price as a fraction; it may be negative where some cost of the model is, too."""
    price = refused_unless_number(cost, OptionError(f"{what} must be a number, not {cost!r}"))
    if abs(price) > sys.float_info.max:
        raise OptionError(f"{what} must be a finite number, not {cost!r}")
    if price < 0 and not signed:
        raise OptionError(f"{what} must be 0 or more, not {cost!r}")
    return price


def _unit(
    ssp: SSP, price: Fraction, factors: Sequence[Fraction] = (Fraction(1),)
) -> Fraction | None:
    """The unit of the model's costs, times each factor, and one more, found exactly; None where the
    model's costs have none.
    """
    if ssp.cost_unit is None:
        return None
    costs = [level * ssp.cost_unit for level in np.unique(ssp.outcome_level).tolist()]
    return common_unit(
        [price, *(cost * factor for factor in dict.fromkeys(factors) for cost in costs)]
    )


def _discounted(
    ssp: SSP, costs: FloatArray, step: NDArray[np.int32], factor: Fraction
) -> FloatArray:
    """Costs times the factor to the power of their step, each rounded once."""
    found, position = np.unique(costs, return_inverse=True)
    unit, last = ssp.cost_unit, int(step.max(initial=0))
    exact = [
        as_fraction(cost) if unit is None else round(Fraction(cost) / unit) * unit
        for cost in found.tolist()
    ]
    scaled = [[float(cost * factor**t) for cost in exact] for t in range(last + 1)]
    return np.array(scaled)[step, position]


def _discount(gamma: Any) -> Fraction:
    refusal = OptionError(f"gamma must lie in (0, 1], not {gamma!r}")
    factor = refused_unless_number(gamma, refusal)
    if not 0 < factor <= 1:
        raise refusal
    return factor


def ended_by_chance(ssp: SSP, gamma: float) -> SSP:
    """The model in which every step is the last one with probability 1 - gamma, after its cost: its
    expected costs are the discounted ones.

    States and choices keep their numbers; one more goal is where runs end early.
    """
    goes_on = np.flatnonzero(~ssp.is_goal[ssp.outcome_target])
    probability = np.append(ssp.outcome_probability, (1 - gamma) * ssp.outcome_probability[goes_on])
    probability[goes_on] *= gamma
    rows = Transitions.from_edges(
        np.append(ssp.outcome_choice, ssp.outcome_choice[goes_on]),
        ssp.n_choices,
        np.append(ssp.outcome_target, np.full(len(goes_on), ssp.n_states)),
        probability,
        np.append(ssp.outcome_cost, ssp.outcome_cost[goes_on]),
    )
    return SSP(
        state_choices=np.append(ssp.state_choices, ssp.state_choices[-1]),
        **outcomes_of_rows(rows),
        choice_action=ssp.choice_action,
        is_goal=np.append(ssp.is_goal, True),
        start_index=ssp.start_index,
        states=range(ssp.n_states + 1),
        actions=ssp.actions,
        exact_unit=ssp.exact_unit,
        probability_error=ssp.probability_error,
    )


def _more_positions(geometry: Geometry | None) -> Geometry | None:
    """The geometry with one state more, off the grid."""
    if geometry is None:
        return None
    row, column = (*geometry.row, -1), (*geometry.column, -1)
    kind = (*geometry.kind, "end")
    return replace(geometry, row=row, column=column, kind=kind)


def fresh_name(name: str, taken: Iterable[Name] | Sequence[Name]) -> str:
    """The name, with as many primes as it takes to be new."""
    known = set(taken)
    while name in known:
        name += "'"
    return name

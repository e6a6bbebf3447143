"""A model laid out for the sweep over budgets (`dp/budgets.py`).

What is laid out: almost sure states, safe choices, and of these what the start can reach; zero-cost
components are one node each, with the choices that leave it. Choices of a node stand with the
risk-neutral one first, then in the model's order, so that ties go to the policy that is also good
on average.

*Budgets that every run exceeds* may be left to their closed form, U(s, w) = V*(s) - w for w <=
nearest(s), the least cost of arriving. Digits cancel in it, so for excesses only budgets up to a
share of V*(s) are left out. Lateness is 1 there, exactly, so that for deadlines all of them are
left out.
"""

from __future__ import annotations

import numpy as np

from tailpath.analysis.core import core_of
from tailpath.analysis.tables import ModelLayout as ModelLayout
from tailpath.dp.layout_builders import lay_out, unavoidable_costs
from tailpath.errors import ModelError
from tailpath.model.border import proposed_delta
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP
from tailpath.solvers.expectation import solve_expected

#: Layouts of up to so many outcomes are stored with their model; larger ones are laid out anew.
LARGEST_STORED = 2**17


def require_unit(ssp: SSP) -> None:
    if ssp.cost_unit is None:
        raise ModelError(
            "the costs have no common unit that is coarse enough to count in; give the width of a"
            f" grid with --delta D (delta=), such as {proposed_delta(ssp):g}"
        )


def layout_of(ssp: SSP, skip: str = "") -> ModelLayout:
    """Lay out a model that has a cost unit and whose start is no goal. `skip` leaves out budgets
    that are sure to be exceeded: "excess" as far as the error of V* allows, "late" all of them.
    """
    if ssp.n_outcomes > LARGEST_STORED:
        return _laid_out(ssp, skip)
    return _stored(ssp, skip)


@found_once
def _stored(ssp: SSP, skip: str) -> ModelLayout:
    return _laid_out(ssp, skip)


def _laid_out(ssp: SSP, skip: str) -> ModelLayout:
    assert ssp.cost_unit is not None
    core, expected = core_of(ssp), solve_expected(ssp)
    value = core.to_nodes(expected.value) / float(ssp.cost_unit)
    rows = core.transitions.replaced(level=core.level)
    risk_neutral = np.zeros(ssp.n_choices, dtype=np.bool_)
    risk_neutral[expected.choices[expected.choices >= 0]] = True
    layout, position = lay_out(
        rows,
        rows.state_rows,
        value,
        int(core.node_of[ssp.start_index]),
        first=risk_neutral[core.choice],
        unavoidable_cost=unavoidable_costs(rows.joined(rows.state_rows), value, skip == "late")
        if skip
        else None,
    )
    return ModelLayout.of(
        layout,
        ssp=ssp,
        risk_neutral=expected.choices,
        choice=core.choice[layout.choice],
        node_of=position[core.node_of],
        unit=ssp.cost_unit,
        lower=expected.lower,
        upper=expected.upper,
        error=ssp.probability_error,
    )

"""`tailpath solve --method expected`: the risk-neutral optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailpath.cli.common import number, pairs
from tailpath.cli.methods import Answer, Method

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP


def run(ssp: SSP) -> Answer:
    import tailpath

    solution = tailpath.solve_expected(ssp)
    value = float(solution.cost(ssp.start))
    low, high = (float(bound) for bound in solution.bounds)
    record = {"expected_cost": value, "bounds": [low, high], "solver": solution.method}
    text = pairs(
        [
            ("least expected cost", number(value, 10)),
            ("verified bounds", f"{number(low, 15)} to {number(high, 15)}"),
            ("solved by", solution.method),
        ]
    )
    return Answer(record, text, solution.policy)


METHOD = Method((), run)

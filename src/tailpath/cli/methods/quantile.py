"""`tailpath solve --method quantile`: CVaRVIQ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailpath.cli.methods import Answer, Method
from tailpath.cli.methods.published import OPTIONS, plan

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP


def run(ssp: SSP, **options: Any) -> Answer:
    import tailpath

    return plan(ssp, tailpath.solve_cvar_quantile, **options)


METHOD = Method(OPTIONS, run)

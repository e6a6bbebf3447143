"""Every claim of the paper's section 5 beside what the stored runs say.

A claim is a function of the results. It returns nothing where the runs it needs are missing, and
judges by numbers alone:

    holds     in all cases
    mostly    in nine of ten
    in part   in a third of them
    differs   in fewer; `remark` says why, as far as the runs show it

Values of the two planners count as equal within their own tolerance, 1e-3, which is as exactly as
they were computed. The maps of Gridworld are this project's, the processor and the programming
language are others than the paper's: times compare in their proportions only.
"""

from __future__ import annotations

from tailpath.study.paper.claims import alpha0, atoms, evaluation, planners
from tailpath.study.paper.claims.claim import Check, Claim
from tailpath.study.paper.design import part_of_paper
from tailpath.study.results import Results

__all__ = ["Claim", "compare"]

#: The claims in the paper's order, by section.
SECTIONS: dict[str, tuple[Check, ...]] = {
    "CVaRVILI and CVaRVIQ": (
        planners.points_counted,
        planners.equal_predictions,
        planners.close_policies,
        planners.faster,
        planners.atoms_take_time,
        planners.alpha0_matters_less,
    ),
    "More atoms": (
        atoms.more_atoms,
        atoms.worse_near_alpha0,
        atoms.boxes_narrow,
        atoms.outliers_near_alpha0,
        atoms.towards_optimum,
    ),
    "A smaller alpha0": (
        alpha0.grid_alpha0,
        alpha0.river_alpha0,
        alpha0.finer_river,
        alpha0.few_atoms_are_far,
        alpha0.target_is_worst,
        alpha0.best_quartile,
    ),
    "Evaluation": (
        evaluation.evaluation_time,
        evaluation.longest_where,
        evaluation.grid_takes_longer,
        evaluation.simulation_error("gridworld"),
        evaluation.simulation_error("river"),
    ),
}


def judged_claims(results: Results) -> dict[str, list[Claim]]:
    """The claims that can be judged with these results, by section of the paper. Runs that are no
    part of the paper's design say nothing to them.
    """
    results = part_of_paper(results)
    if not results.problems:
        return {}
    found = {
        section: [claim for check in checks if (claim := check(results)) is not None]
        for section, checks in SECTIONS.items()
    }
    return {section: claims for section, claims in found.items() if claims}

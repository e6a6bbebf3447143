"""Every claim of the paper's section 5 beside what the stored runs say.

A claim is what the paper says, its number, and a function of the results. That returns nothing
where the runs it needs are missing, and judges by numbers alone:

    holds     in all cases
    mostly    in nine of ten
    in part   in a third of them
    differs   in fewer; `remark` says why, as far as the runs show it

Values of the two planners count as equal within their own tolerance, 1e-3, which is as exactly as
they were computed. The maps of Gridworld are this project's, the processor and the programming
language are others than the paper's: times compare in their proportions only.
"""

from __future__ import annotations

from functools import partial

from tailpath.study.paper.claims import atoms, evaluation, planners
from tailpath.study.paper.claims.claim import Check, Finding
from tailpath.study.paper.design import part_of_paper
from tailpath.study.results import Results

__all__ = ["SECTIONS", "judged_claims"]

#: The claims in the paper's order, by section: what it says, its number, and what is looked at.
SECTIONS: dict[str, dict[str, tuple[str, Check]]] = {
    "CVaRVILI and CVaRVIQ": {
        "Predicted and deployed values of both planners": ("810 of each", planners.points_counted),
        "Predicted values of CVaRVILI and CVaRVIQ differ by less than 1e-6": (
            "all 810",
            planners.equal_predictions,
        ),
        "Deployed values of the two policies differ by less than 1e-3, 1e-2, 1e-1": (
            "97.28 %, 99.26 %, 100 % of 810",
            planners.close_policies,
        ),
        "CVaRVIQ is at least one order of magnitude faster, up to two with more atoms": (
            "10 to 100 times",
            planners.faster,
        ),
        "More atoms take longer, on all problems": ("all", planners.atoms_take_time),
        "alpha0 changes the time less than |Y| does": ("yes", planners.alpha0_matters_less),
    },
    "More atoms": {
        "With more atoms predicted values rise, deployed ones fall and the distance shrinks, in all"
        " experiments": ("all", atoms.more_atoms),
        "Points near alpha0 are further off than points near 1, in general": (
            "yes",
            atoms.worse_near_alpha0,
        ),
        "Box plots: predicted / deployed comes closer to 1 with more atoms": (
            "yes",
            atoms.boxes_narrow,
        ),
        "The outliers of the box plots are atoms near alpha0, for every |Y|": (
            "yes",
            atoms.outliers_near_alpha0,
        ),
        "Value and policy move towards the optimal value with more atoms": (
            "yes (inferred)",
            atoms.towards_optimum,
        ),
    },
    "A smaller alpha0": {
        "Gridworld 14×16, 25 atoms: at alpha = 1e-2 and 1e-1 the deployed value is smaller with"
        " alpha0 < alpha than with alpha0 = alpha": ("yes", atoms.grid_alpha0),
        "River 30×10, 25 atoms: at alpha = 1e-2 the deployed value is not smaller with alpha0 ="
        " 1e-3 than with 1e-2, for want of atoms": ("yes", atoms.river_alpha0),
        "River 30×10: with more atoms the smaller alpha0 helps as in Gridworld": (
            "yes (numbers not shown)",
            atoms.finer_river,
        ),
        "alpha_target = 0.1: with few atoms predicted values are far from deployed ones; 25 is the"
        " better choice": ("yes (not shown)", atoms.few_atoms_are_far),
        "25 atoms: alpha0 = alpha_target = 0.1 has the worst minimum and first quartile, in both"
        " domains": ("yes", atoms.target_is_worst),
        "25 atoms: the best first quartile is at alpha0 = 1e-2 in Gridworld and 1e-3 in River": (
            "alpha0 = 0.01 (gridworld), alpha0 = 0.001 (river)",
            atoms.best_quartile,
        ),
    },
    "Evaluation": {
        "ForPECVaR takes longer with a smaller alpha0 and with more atoms, in all experiments": (
            "all",
            evaluation.evaluation_time,
        ),
        "Table 1: always with |Y| = 25 and alpha0 = 1e-3": ("all 12", evaluation.longest_where),
        "Gridworld policies take longer to evaluate than River's": (
            "all 6",
            evaluation.grid_takes_longer,
        ),
        **{
            f"{domain.capitalize()}: Monte Carlo is inaccurate in the same time (mean / median /"
            " maximum difference, averaged over 5 runs)": (
                evaluation.three(errors),
                partial(evaluation.simulation_error, domain),
            )
            for domain, errors in evaluation.PAPER_ERRORS.items()
        },
    },
}


def judged_claims(results: Results) -> dict[str, dict[str, Finding]]:
    """What is found for the claims that can be judged with these results, by section of the paper.
    Runs that are no part of the paper's design say nothing to them.
    """
    results = part_of_paper(results)
    if not results.problems:
        return {}
    found = {
        section: {
            says: finding
            for says, (_, check) in claims.items()
            if (finding := check(results)) is not None
        }
        for section, claims in SECTIONS.items()
    }
    return {section: findings for section, findings in found.items() if findings}

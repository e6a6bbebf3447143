"""A study as a reader wants it: figures, tables and `study.md`, from the stored runs alone.

`study.md` puts every claim of the paper's section 4, the paper's number and ours side by side. A
claim is judged by a function of the results, which returns nothing where the runs it needs are
missing. Values of the two planners count as equal within their own tolerance, 1e-3, which is as
exactly as they were computed. Nothing here plans or evaluates: a report can be made where the study
was not run, and again when only the drawing has changed.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from forpecvar import atoms, claims
from forpecvar.claims import Check, Finding, is_complete, paper
from forpecvar.design import Design
from forpecvar.figures import draw_all
from forpecvar.results import Results
from forpecvar.store import Edition, Run, Store
from forpecvar.tables import CaptionedTable, all_tables
from tailpath.formats import write_bytes


@dataclass(frozen=True)
class Claim:
    """The paper's number, what counts as a case in which the claim holds, and who looks."""

    paper: str
    rule: str
    check: Check


#: The claims in the paper's order, by section: what it says, and how it is judged.
SECTIONS: dict[str, dict[str, Claim]] = {
    "CVaRVILI and CVaRVIQ": {
        "Predicted and deployed values of both planners": Claim(
            "810 of each", "points stored", claims.points_counted
        ),
        "Predicted values of CVaRVILI and CVaRVIQ differ by less than 1e-6": Claim(
            "all 810", "points", claims.equal_predictions
        ),
        "Deployed values of the two policies differ by less than 1e-3, 1e-2, 1e-1": Claim(
            "97.28 %, 99.26 %, 100 % of 810",
            "limits below which the share is at least the paper's",
            claims.close_policies,
        ),
        "CVaRVIQ is at least one order of magnitude faster": Claim(
            "10 times", "settings with a ratio of 10 or more", claims.faster
        ),
        "and up to two orders with more atoms": Claim(
            "100 times",
            "settings with a ratio of 100 or less",
            partial(claims.faster, most=100.0),
        ),
        "More atoms take longer, on all problems": Claim(
            "all", "series of a planner that rise; the worse planner counts", claims.atoms_take_time
        ),
        "alpha0 changes the time less than |Y| does": Claim(
            "yes", "planners, by medians over the series", claims.alpha0_matters_less
        ),
    },
    "More atoms": {
        "With more atoms predicted values rise, deployed ones fall and the distance shrinks, in all"
        " experiments": Claim(
            "all",
            "common atoms, to 1e-3 at every step; the worst of the three counts",
            atoms.more_atoms,
        ),
        "Points near alpha0 are further off than points near 1, in general": Claim(
            "yes",
            "runs whose lower half of atoms is further off on average (our reading of 'near')",
            atoms.worse_near_alpha0,
        ),
        "Box plots: predicted / deployed comes closer to 1 with more atoms": Claim(
            "yes", "domains where median and first quartile rise at every step", atoms.boxes_narrow
        ),
        "The outliers of the box plots are atoms near alpha0, for every |Y|": Claim(
            "yes",
            "outliers in the third of the log range next to alpha0 (our reading of 'near')",
            atoms.outliers_near_alpha0,
        ),
        "Value and policy move towards the optimal value with more atoms": Claim(
            "yes (inferred)", "domains where the mean excess falls", atoms.towards_optimum
        ),
    },
    "A smaller alpha0": {
        "Gridworld 14×16, 25 atoms: at alpha = 1e-2 and 1e-1 the deployed value is smaller with"
        " alpha0 < alpha than with alpha0 = alpha": Claim(
            "yes", "the paper's three comparisons", atoms.grid_alpha0
        ),
        "River 30×10, 25 atoms: at alpha = 1e-2 the deployed value is not smaller with alpha0 ="
        " 1e-3 than with 1e-2, for want of atoms": Claim(
            "yes", "the one comparison", atoms.river_alpha0
        ),
        "River 30×10: with more atoms the smaller alpha0 helps as in Gridworld": Claim(
            "yes (numbers not shown)", "the same comparison with 49 atoms", atoms.finer_river
        ),
        "alpha_target = 0.1: with few atoms predicted values are far from deployed ones; 25 is the"
        " better choice": Claim(
            "yes (not shown)",
            "domains where the mean distance falls at every step",
            atoms.few_atoms_are_far,
        ),
        "25 atoms: alpha0 = alpha_target = 0.1 has the worst minimum and first quartile, in both"
        " domains": Claim("yes", "the four numbers", atoms.target_is_worst),
        "25 atoms: the best first quartile has alpha0 = 1e-2 in Gridworld, 1e-3 in River": Claim(
            "alpha0 = 0.01 (gridworld), alpha0 = 0.001 (river)", "domains", atoms.best_quartile
        ),
    },
    "Evaluation": {
        "ForPECVaR takes longer with a smaller alpha0 and with more atoms, always": Claim(
            "all",
            "series of the queue's times that rise, by alpha0 and by |Y|; the worse counts",
            claims.evaluation_time,
        ),
        "Table 1: always with |Y| = 25 and alpha0 = 1e-3": Claim(
            "all 12",
            "planners and problems whose longest time is there, by the queue",
            claims.longest_where,
        ),
        "Gridworld policies take longer to evaluate than River's": Claim(
            "all 6", "pairs of problems by size, for both planners", claims.grid_takes_longer
        ),
        **{
            f"{domain.capitalize()}: Monte Carlo is inaccurate in the same time (mean / median /"
            " maximum difference, averaged over 5 runs)": Claim(
                claims.three(errors),
                "settings off by more than 0.001 at alpha0 (the paper's least difference of"
                " policies), on average over the runs, in the queue's time",
                partial(claims.simulation_error, domain),
            )
            for domain, errors in claims.PAPER_ERRORS.items()
        },
    },
}


#: What is found by variant, section and claim.
Judged = Mapping[str, Mapping[str, Mapping[str, Finding]]]


def judged_claims(results: Results) -> dict[str, dict[str, Finding]]:
    """What is found for the claims that can be judged with these results, by section of the paper.
    Runs that are no part of the paper's design say nothing to them.
    """
    results = results.of_design(paper())
    if not results.problems:
        return {}
    found = {
        section: {
            says: finding
            for says, claim in claimed.items()
            if (finding := claim.check(results)) is not None
        }
        for section, claimed in SECTIONS.items()
    }
    return {section: findings for section, findings in found.items() if findings}


def claims_table(judged: Judged) -> CaptionedTable:
    """Every verdict, one to a row: what two runs of a study can be compared by."""
    records = [
        {
            "verdict": finding.verdict,
            "variant": variant,
            "section": section,
            "claim": says,
            "here": finding.ours,
        }
        for variant, sections in judged.items()
        for section, findings in sections.items()
        for says, finding in findings.items()
    ]
    return CaptionedTable("claims", "", records)


# ---------------------------------------------------------------------- the page

PAGE = "study.md"


def write_report(
    folder: str | os.PathLike[str],
    edition: Edition | None = None,
    update: Callable[[str], None] = lambda text: None,
) -> list[pathlib.Path]:
    """Write `study.md`, `figures/` and `tables/` beside the stored runs of an edition, by default
    the one written last; `update` is told which figure is drawn.
    """
    with Store(folder) as store:
        chosen = store.latest() if edition is None else edition
        runs, others = store.runs(chosen), store.others(chosen)
        title = store.title
    path_name, results = pathlib.Path(folder), Results(runs)
    judged = {variant: judged_claims(results.of_variant(variant)) for variant in results.judged}
    tables, claimed = all_tables(results), claims_table(judged)
    (path_name / "tables").mkdir(exist_ok=True)
    written = [of.write(path_name / "tables") for of in [claimed, *tables] if of.records]
    figures = draw_all(results, path_name / "figures", update)
    drawn = [path_name / "figures" / f"{name}{end}" for name in figures for end in (".pdf", ".png")]
    page = path_name / PAGE
    write_bytes(page, _page(results, title, runs, others, judged, tables, figures).encode())
    return [page, *drawn, *written]


def _page(
    results: Results,
    title: str,
    runs: Sequence[Run],
    others: int,
    judged: Judged,
    tables: Sequence[CaptionedTable],
    figures: Mapping[str, str],
) -> str:
    complete = is_complete(results.of_design(paper()))
    own = title and title != paper().title  # a part of the paper's study is not the paper's
    parts = [
        f"# {paper().title if complete else title if own else Design.title}",
        _about(results, runs, others),
    ]
    if any(judged.values()):
        parts += ["## The paper's claims", CLAIMS]
    for section in SECTIONS:
        if any(section in found for found in judged.values()):
            parts += [f"### {section}", _claims(section, judged)]
    parts.append("## Tables")
    for table in tables:
        parts += [f"**{table.caption}**", table.markdown()]
    parts.append("## Figures")
    parts += [
        f"![{caption}](figures/{name}.png)\n\n*{caption}* ([PDF](figures/{name}.pdf))"
        for name, caption in figures.items()
    ]
    # What stands in a store may come from anybody; a page of plain text has no tags.
    return ("\n\n".join(parts) + "\n").replace("<", "&lt;")


CLAIMS = """\
Every claim of section 4 that the stored runs can judge. *holds*: as the paper says, in all
cases; *mostly*: in nine of ten; *in part*: in a third of them; *differs*: in fewer. These
limits are ours, and the same for all claims: "in all experiments" means all. What a case is
stands beside each claim. Times are judged by the least of several calls, and those within 25 %
of each other are taken for the same: a series rises if it does at every step beyond that. The
obstacles of the paper's Gridworld are not published, so the maps are this project's own; the
machine and the programming language are others. Numbers of Gridworld and all times can
therefore agree in their proportions only."""


def _about(results: Results, runs: Sequence[Run], others: int) -> str:
    points = sum(len(run.points) for run in runs)
    lines = [
        (
            f"{len(runs)} runs with {points} points, computed by tailpath"
            f" {', '.join(sorted({run.answer.program for run in runs}))}"
        ),
        f"on {'; '.join(sorted({run.answer.machine for run in runs}))}.",
        "Costs are minimised; alpha is the worst-tail mass; CVaR at alpha 1 is the mean.",
        (
            "*Predicted* is the value that a planner returns (the paper's approximate value),"
            " *deployed* the value of its policy by ForPECVaR"
        ),
        (
            "(the paper's exact value), *optimum* the least CVaR over all policies. Times are"
            " medians of several calls, in processor seconds."
        ),
    ]
    if results.variants:
        lines.append(
            "*published* planners have values that start from V = 0 and the factors of their"
            " authors' code, in our order of sweeps; *improved* ones start above the risk-neutral"
            " policy; *printed*, for contrast, is the published CVaRVIQ with xi = F(VaR) / y, F"
            " counted from the worst end, for every successor that ties. Here:"
            f" {', '.join(results.variants)}; tables and figures show {results.variant} unless they"
            " say otherwise."
        )
    if not is_complete(results.of_design(paper())):
        lines.append(
            "This is not the paper's whole design: its claims are judged on what is here, and those"
            " that need more are left out."
        )
    if closed := sum(run.task.inner == "greedy" for run in runs):
        lines.append(
            f"Without linear programs, in {closed} of the runs, CVaRVILI's values come from the"
            " closed form of the same inner problem, and say little about how far the planners"
            " agree."
        )
    if others:
        lines.append(
            f"{others} stored runs of other versions of the program or of other models are not"
            " used."
        )
    return "\n".join(lines)


def _claims(section: str, judged: Judged) -> str:
    """A row for every claim and variant; where all say the same, it is said once."""
    rows = []
    remarks: dict[str, None] = {}
    for says, claim in SECTIONS[section].items():
        found = {
            variant: sections[section][says]
            for variant, sections in judged.items()
            if says in sections.get(section, {})
        }
        if len(found) > 1 and len({(each.ours, each.verdict) for each in found.values()}) == 1:
            found = {"both": next(iter(found.values()))}
        for variant, each in found.items():
            cells = {"the paper says": says, "paper": claim.paper, "cases": claim.rule}
            cells["variant"] = variant
            rows.append({**cells, "here": each.ours, "verdict": f"**{each.verdict}**"})
            if each.remark:
                which = f" ({variant})" if len(found) > 1 else ""
                remarks[f"- {says}{which}: {each.remark}"] = None
    table = CaptionedTable("claims", "", rows).markdown()
    return table + ("\n\nRemarks:\n\n" + "\n".join(remarks) if remarks else "")

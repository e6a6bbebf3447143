"""A study as a reader wants it: figures, tables and `study.md`, from the stored runs alone.

`study.md` puts the paper's claim, the paper's number and ours side by side. Nothing here plans or
evaluates: a report can be made where the study was not run, and again when only the drawing has
changed.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence

from tailpath.formats.files import write_text
from tailpath.study.design import Design
from tailpath.study.paper.captioned_table import CaptionedTable
from tailpath.study.paper.claims import Claim, judged_claims
from tailpath.study.paper.design import is_complete, paper, part_of_paper
from tailpath.study.paper.figures import draw_all
from tailpath.study.paper.tables import all_tables
from tailpath.study.results import Results
from tailpath.study.store import Edition, Run, Store

PAGE = "study.md"


def write_report(
    folder: str | os.PathLike[str], edition: Edition | None = None
) -> list[pathlib.Path]:
    """Write `study.md`, `figures/` and `tables/` beside the stored runs of an edition, by default
    the one written last.
    """
    with Store(folder) as store:
        chosen = store.latest() if edition is None else edition
        runs, others = store.runs(chosen), store.others(chosen)
        title = store.title
    path_name = pathlib.Path(folder)
    results = Results(runs)
    tables = all_tables(results)
    (path_name / "tables").mkdir(exist_ok=True)
    for table in tables:
        table.write(path_name / "tables")
    figures = draw_all(results, path_name / "figures")
    page = path_name / PAGE
    write_text(page, _page(results, title, runs, others, tables, figures))
    drawn = [
        path_name / "figures" / f"{name}{suffix}" for name in figures for suffix in (".pdf", ".png")
    ]
    return [page, *drawn, *(path_name / "tables" / f"{table.name}.csv" for table in tables)]


def _page(
    results: Results,
    title: str,
    runs: Sequence[Run],
    others: int,
    tables: Sequence[CaptionedTable],
    figures: Mapping[str, str],
) -> str:
    complete = is_complete(part_of_paper(results))
    own = title and title != paper().title  # a part of the paper's study is not the paper's
    parts = [
        f"# {paper().title if complete else title if own else Design.title}",
        _about(results, runs, others),
    ]
    judged = {variant: judged_claims(results.of_variant(variant)) for variant in results.judged}
    sections = list(dict.fromkeys(section for found in judged.values() for section in found))
    if sections:
        parts += ["## The paper's claims", CLAIMS]
    for section in sections:
        parts += [
            f"### {section}",
            _claims({variant: found.get(section, []) for variant, found in judged.items()}),
        ]
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
Every claim of section 5 that the stored runs can judge. *holds*: as the paper says, in all
cases; *mostly*: in nine of ten; *in part*: in a third of them; *differs*: in fewer. The
obstacles of the paper's Gridworld are not published, so the maps are this project's own; the
machine and the programming language are others. Numbers of Gridworld and all times can
therefore agree in their proportions only."""


def _about(results: Results, runs: Sequence[Run], others: int) -> str:
    points = sum(len(run.points) for run in runs)
    estimated = sum(run.answer.estimated for run in runs)
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
            "*published* planners are those that their authors ran, values from V = 0; *improved*"
            " ones differ by their start alone, above the risk-neutral policy; *printed*, for"
            " contrast, is the published CVaRVIQ with xi = F(VaR) / y to the letter. Here:"
            f" {', '.join(results.variants)}; tables and figures show {results.variant} unless they"
            " say otherwise."
        )
    if not is_complete(part_of_paper(results)):
        lines.append(
            "This is not the paper's whole design: its claims are judged on what is here, and those"
            " that need more are left out."
        )
    if estimated:
        lines.append(
            f"The planning times of {estimated} runs of CVaRVILI are estimated: linear programs"
            " were timed on whole sweeps and scaled by the number of sweeps; the values of these"
            " runs come from the closed form of the same inner problem."
        )
    if others:
        lines.append(
            f"{others} stored runs of other versions of the program or of other models are not"
            " used."
        )
    return "\n".join(lines)


def _claims(by_variant: Mapping[str, Sequence[Claim]]) -> str:
    """A row for every claim and variant; where both say the same, it is said once."""
    found: dict[str, dict[str, Claim]] = {}
    for variant, claims in by_variant.items():
        for claim in claims:
            found.setdefault(claim.says, {})[variant] = claim
    rows, remarks = [], []
    for says, claims_of in found.items():
        first = next(iter(claims_of.values()))
        if (
            len({(claim.ours, claim.verdict) for claim in claims_of.values()}) == 1
            and len(claims_of) > 1
        ):
            claims_of = {"both": first}
        rows += [
            (says, claim.paper, variant, claim.ours, f"**{claim.verdict}**")
            for variant, claim in claims_of.items()
        ]
        for variant, claim in claims_of.items():
            if claim.remark and f"- {says}: {claim.remark}" not in remarks:
                remarks.append(
                    f"- {says}: {claim.remark}"
                    if len(claims_of) == 1
                    else f"- {says} ({variant}): {claim.remark}"
                )
    table = CaptionedTable(
        "claims", "", ("the paper says", "paper", "variant", "here", "verdict"), rows
    ).markdown()
    return table + ("\n\nRemarks:\n\n" + "\n".join(remarks) if remarks else "")

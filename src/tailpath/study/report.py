"""A study as a reader wants it: figures, tables and `study.md`, from the stored runs alone.

`study.md` puts the paper's claim, the paper's number and ours side by side. Nothing here plans or evaluates: a report can be made where the study
was not run, and again when only the drawing has changed.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence

from tailpath.study.claims import Claim, compare
from tailpath.study.figures import draw_all
from tailpath.study.results import Results
from tailpath.study.store import Edition, Run, Store
from tailpath.study.tables import Table, all_tables

PAGE = "study.md"


def write_report(folder: str | os.PathLike[str], edition: Edition | None = None) -> list[pathlib.Path]:
    """Write `study.md`, `figures/` and `tables/` beside the stored runs of an edition, by default the one written last."""
    with Store(folder) as store:
        chosen = store.latest() if edition is None else edition
        runs, others = store.runs(chosen), store.others(chosen)
    place = pathlib.Path(folder)
    results = Results(runs)
    tables = all_tables(results)
    (place / "tables").mkdir(exist_ok=True)
    for table in tables:
        table.write(place / "tables")
    figures = draw_all(results, place / "figures")
    page = place / PAGE
    page.write_text(_page(runs, others, compare(results), tables, figures), encoding="utf-8")
    drawn = [place / "figures" / f"{name}{suffix}" for name in figures for suffix in (".pdf", ".png")]
    return [page, *drawn, *(place / "tables" / f"{table.name}.csv" for table in tables)]


def _page(
    runs: Sequence[Run], others: int, claims: Mapping[str, Sequence[Claim]], tables: Sequence[Table], figures: Mapping[str, str]
) -> str:
    parts = ["# The paper's experiments, repeated", _about(runs, others)]
    parts += ["## The paper's claims", CLAIMS]
    for section, found in claims.items():
        parts += [f"### {section}", _claims(found)]
    parts.append("## Tables")
    for table in tables:
        parts += [f"**{table.caption}**", table.markdown()]
    parts.append("## Figures")
    parts += [f"![{caption}](figures/{name}.png)\n\n*{caption}* ([PDF](figures/{name}.pdf))" for name, caption in figures.items()]
    return "\n\n".join(parts) + "\n"


CLAIMS = """Every claim of section 5 that the stored runs can judge. *holds*: as the paper says, in all cases; *mostly*: in nine of ten; *in part*:
in a third of them; *differs*: in fewer. The obstacles of the paper's Gridworld are not published, so the maps are this project's own; the
machine and the programming language are others. Numbers of Gridworld and all times can therefore agree in their proportions only."""


def _about(runs: Sequence[Run], others: int) -> str:
    points = sum(len(run.points) for run in runs)
    estimated = sum(run.answer.estimated for run in runs)
    lines = [
        f"{len(runs)} runs with {points} points, computed by tailpath {', '.join(sorted({run.answer.program for run in runs}))}",
        f"on {'; '.join(sorted({run.answer.machine for run in runs}))}.",
        "Costs are minimised; alpha is the worst-tail mass; CVaR at alpha 1 is the mean.",
        "*Predicted* is the value that a planner returns (the paper's approximate value), *exact* the value of its policy by ForPECVaR,",
        "*optimum* the least CVaR over all policies.",
    ]
    if estimated:
        lines.append(
            f"The planning times of {estimated} runs of CVaRVILI are estimated: linear programs were timed on whole sweeps and"
            " scaled by the number of sweeps; the values of these runs come from the closed form of the same inner problem."
        )
    if others:
        lines.append(f"{others} stored runs of other versions of the program or of other models are not used.")
    return "\n".join(lines)


def _claims(claims: Sequence[Claim]) -> str:
    rows = [(claim.says, claim.paper, claim.ours, f"**{claim.verdict}**") for claim in claims]
    table = Table("claims", "", ("the paper says", "paper", "here", "verdict"), rows).markdown()
    remarks = [f"- {claim.says}: {claim.remark}" for claim in claims if claim.remark]
    return table + ("\n\nRemarks:\n\n" + "\n".join(remarks) if remarks else "")

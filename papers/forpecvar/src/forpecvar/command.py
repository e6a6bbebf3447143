"""`tailpath study --out DIR`, and `tailpath report DIR` for its figures and tables.

The commands are listed by `tailpath --help`: what computes is imported when they are called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from importlib.util import find_spec
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from forpecvar.runner import Study
    from forpecvar.store import Edition, StudyTask

FAILED = 1
MAX_SHOWN = 10
COLUMNS = ("problem", "method", "variant", "inner", "atoms", "alpha0", "state")
#: What restricts a design.
LIMITS = ("only", "models", "methods", "variants", "atoms", "alpha0", "gamma")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def several(flag: str, name: str, help: str, **settings: Any) -> Callable[..., Any]:
    return click.option(flag, name, multiple=True, help=f"{help} (repeatable).", **settings)


@click.command()
@click.option(
    "--out",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Where runs, figures, tables and study.md go.",
)
@click.option(
    "--design", metavar="FILE", help="A study of your own (.toml); the paper's by default."
)
@several(
    "--only",
    "only",
    "Only this domain or problem, e.g. gridworld/5x5",
    metavar="DOMAIN[/PROBLEM]",
)
@several("--model", "models", "Study this model, a file or scheme:text", metavar="MODEL")
@several("--method", "methods", "Only this method of the register", metavar="NAME")
@several(
    "--variant",
    "variants",
    "Only this variant of the planners: improved, published or printed",
    metavar="NAME",
)
@several("--atoms", "atoms", "Only this number of atoms", type=int, metavar="N")
@several("--alpha0", "alpha0", "Only this least atom", type=float, metavar="A")
@click.option(
    "--gamma",
    type=float,
    metavar="G",
    help="Discount: costs at step t count G^t times; no optimum is computed then.",
)
@click.option(
    "--lp",
    type=click.Choice(["full", "none"]),
    default="full",
    show_default=True,
    help="Linear programs of CVaRVILI: to convergence everywhere, or not at all.",
)
@click.option("--no-simulation", is_flag=True, help="Leave the Monte Carlo comparisons out.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Processes on this machine; by default one per core.",
)
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="List the runs, and with --out which of them are stored; compute nothing.",
)
@click.option(
    "--export",
    type=click.Choice(["csv", "parquet"]),
    help="Write the stored rows as files, too.",
)
@json_option
def study(**given: Any) -> int:
    """Repeat the paper's experiments, or study models and methods of your own.

    The optimum, which the paper does not have, is added. Every run is stored in DIR/runs.sqlite as
    it finishes, so you can stop at any time and start again: only missing runs are computed. Runs
    of different program versions or models are never mixed.
    """
    from forpecvar.claims import paper
    from forpecvar.design import read_design, restricted, tasks
    from forpecvar.runner import prepare
    from forpecvar.store import NEEDS_PYARROW
    from tailpath.cli.application import print_message
    from tailpath.errors import OptionError

    asked = SimpleNamespace(**given)
    if asked.export == "parquet" and find_spec("pyarrow") is None:
        raise OptionError(NEEDS_PYARROW)  # before hours of work, not after
    if asked.folder is None and not asked.only_list:
        raise click.UsageError("Missing option '--out'")
    design = paper() if asked.design is None else read_design(asked.design)
    chosen = restricted(design, **{name: given[name] for name in LIMITS})
    ready = prepare(chosen, tasks(chosen, lp=asked.lp, simulation=not asked.no_simulation))
    for note in sorted({note for model in ready.models.values() for note in model.notes}):
        print_message("note", note)
    if asked.only_list:
        _list(asked, ready)
        return 0
    record = _run(asked, ready)
    _finish(asked, ready.edition, record)
    return FAILED if record["failed"] else 0


@click.command()
@click.argument("folder", metavar="DIR")
@json_option
def report(folder: str, as_json: bool) -> None:
    """Figures and tables of a study, from its stored runs.

    study.md, the figures and the tables of the study in DIR are made again; nothing is solved or
    evaluated. If DIR holds runs of several program versions, those of the version that wrote last
    are shown.
    """
    _finish(SimpleNamespace(folder=folder, as_json=as_json, export=None), None, {})


def runs(number: int) -> str:
    return f"{number:,} run{'s' * (number != 1)}"


def _run(asked: SimpleNamespace, study: Study) -> dict[str, Any]:
    from forpecvar.runner import processes, run_study
    from forpecvar.store import Store
    from tailpath.cli.application import print_message
    from tailpath.pictures import progress_line

    title = study.design.title
    try:
        with Store(asked.folder, create=True) as store, progress_line() as update:
            store.entitle(title)
            progress = _progress(update, len(study.tasks))
            outcome = run_study(store, study, partial(processes, asked.workers), progress)
    except KeyboardInterrupt:
        print_message("note", "finished runs are stored; run the same command again to resume")
        raise
    if outcome.others:
        print_message(
            "note", f"{outcome.others} stored runs of another program version or model are not used"
        )
    for failure in outcome.failures[:MAX_SHOWN]:
        print_message("error", f"{failure.task}: {failure.reason}")
    failed = len(outcome.failures)
    if failed:
        print_message(
            "error",
            f"{runs(failed)} missing; all others are stored, and the same command tries again",
        )
    counts = {"computed": outcome.computed, "found": outcome.found, "failed": failed}
    return {"title": title, **counts}


def _finish(asked: SimpleNamespace, edition: Edition | None, record: dict[str, Any]) -> None:
    """Rebuild the report of an edition (by default the one written last), export it if asked, and
    say what was written.
    """
    from forpecvar.report import write_report
    from forpecvar.store import Store
    from tailpath.cli.output import print_result
    from tailpath.pictures import progress_line

    with Store(asked.folder) as store, progress_line() as update:
        shown = store.latest() if edition is None else store.widened(edition)
        written = write_report(store.folder, shown, update)
        written += store.export(asked.export, shown) if asked.export is not None else []
    counts = (
        f"{record['title']}\n{runs(record['computed'])} computed, {record['found']} found in the"
        " store\n"
        if record
        else ""
    )
    text = f"{counts}{written[0]} and {len(written) - 1} more files written"
    print_result({**record, "files": [str(path) for path in written]}, text, asked.as_json)


def _list(asked: SimpleNamespace, study: Study) -> None:
    from forpecvar.store import FILE_NAME, Store
    from tailpath.cli.output import fitted_table, print_result

    done: Collection[StudyTask] = ()
    if asked.folder is not None and os.path.exists(os.path.join(asked.folder, FILE_NAME)):
        with Store(asked.folder) as store:
            done = store.finished(study.edition) & set(study.tasks)
    rows = []
    for task in study.tasks:
        which = (f"{task.domain}/{task.problem}", task.method, task.variant or "-")
        state = "stored" if task in done else "missing"
        rows.append((*which, task.inner or "-", task.atoms, task.alpha0, state))
    table = fitted_table(COLUMNS, rows)
    text = f"{study.design.title}\n\n{table}\n{runs(len(rows))}, {len(done)} stored"
    record = {"runs": [dict(zip(COLUMNS, row)) for row in rows], "stored": len(done)}
    print_result(record, text, asked.as_json)


def _progress(update: Callable[[str], None], all_runs: int) -> Callable[[int, float, str], None]:
    """Shows the runs done, what is computed now, and the time left by the effort done."""
    began = monotonic()

    def show_progress(done: int, share: float, now: str) -> None:
        rest = f", about {(monotonic() - began) * (1 / share - 1):.0f} s left" if share > 0 else ""
        update(f"{done} of {all_runs} runs{f', now: {now}' if now else ''}{rest}")

    return show_progress

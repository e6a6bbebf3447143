"""`tailpath study --out DIR`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from importlib.util import find_spec
from time import monotonic
from typing import Any

import click

from tailpath.cli.application import print_message
from tailpath.cli.common import alpha as tail_mass
from tailpath.cli.output import fitted_table, json_option, show
from tailpath.cli.planning import complete_method
from tailpath.errors import OptionError
from tailpath.options import Progress, processors
from tailpath.pictures.progress import progress_line
from tailpath.study.design import read_design, restricted, tasks
from tailpath.study.executors import cluster, processes
from tailpath.study.paper.design import paper
from tailpath.study.paper.report import write_report
from tailpath.study.runner import Study, prepare, run_study
from tailpath.study.store import FILE_NAME, NEEDS_PYARROW, Edition, Store, StudyTask
from tailpath.texts import count

FAILED = 1
MOST_SHOWN = 10


@click.command()
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where runs, figures, tables and study.md go.",
)
@click.option(
    "--design", metavar="FILE", help="A study of your own (.toml); the paper's by default."
)
@click.option(
    "--only",
    multiple=True,
    metavar="DOMAIN[/PROBLEM]",
    help="Only this domain or problem, e.g. gridworld/5x5 (repeatable).",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="Study this model, a file or scheme:text (repeatable).",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_method,
    help="Only this method of the register (repeatable).",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    help="Only this variant of the planners: improved, published or printed (repeatable).",
)
@click.option(
    "--atoms", multiple=True, type=int, metavar="N", help="Only this number of atoms (repeatable)."
)
@click.option(
    "--alpha0",
    multiple=True,
    type=tail_mass,
    metavar="A",
    help="Only this least atom (repeatable).",
)
@click.option(
    "--gamma",
    type=float,
    metavar="G",
    help="Discount: costs at step t count G^t times; no optimum is computed then.",
)
@click.option(
    "--lp",
    type=click.Choice(["default", "full", "none"]),
    default="default",
    show_default=True,
    help=(
        "Linear programs of CVaRVILI: to convergence on small problems and timed on sweeps"
        " elsewhere; to convergence everywhere; not at all."
    ),
)
@click.option("--no-simulation", is_flag=True, help="Leave the Monte Carlo comparisons out.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes on this machine; by default one per core.",
)
@click.option(
    "--cluster",
    "address",
    metavar="ADDRESS",
    help="Use the workers of a Dask scheduler, e.g. tcp://host:8786.",
)
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="List the runs, and with --out which of them are stored; compute nothing.",
)
@click.option(
    "--figures",
    "only_report",
    is_flag=True,
    help="Compute nothing; rebuild figures, tables and study.md from the stored runs.",
)
@click.option(
    "--export", type=click.Choice(["csv", "parquet"]), help="Write the stored rows as files, too."
)
@json_option
def command(
    folder: str | None,
    design: str | None,
    workers: int | None,
    address: str | None,
    only_list: bool,
    only_report: bool,
    export: str | None,
    as_json: bool,
    lp: str,
    no_simulation: bool,
    **restrictions: Any,
) -> int:
    """Repeat the paper's experiments on this program's domains, and add the optimum; or study
    models and methods of your own.

    Every finished run is stored at once in DIR/runs.sqlite. Stop it at any time and start it again:
    only what is missing is computed. Runs of another program version or model are never mixed with
    these.
    """
    if workers is not None and address is not None:
        raise click.UsageError(
            "--workers is for this machine and --cluster for others; give one of them"
        )
    if export == "parquet" and find_spec("pyarrow") is None:  # before hours of work, not after
        raise OptionError(NEEDS_PYARROW)
    if folder is None and not only_list:
        raise click.UsageError("Missing option '--out'")
    if only_report:
        assert folder is not None
        _finish(folder, None, {}, export, as_json)
        return 0
    chosen = restricted(paper() if design is None else read_design(design), **restrictions)
    study = prepare(chosen, tasks(chosen, lp=lp, simulation=not no_simulation))
    for note in sorted({note for model in study.models.values() for note in model.notes}):
        print_message("note", note)
    if only_list:
        _list(study, chosen.title, folder, as_json)
        return 0
    assert folder is not None
    record, code = _run(folder, study, chosen.title, workers, address)
    _finish(folder, study.edition, record, export, as_json)
    return code


def _run(
    folder: str, study: Study, title: str, workers: int | None, address: str | None
) -> tuple[dict[str, Any], int]:
    def open_executor() -> Any:
        return processes(workers or processors()) if address is None else cluster(address)

    with Store(folder, create=True) as store, progress_line() as update:
        store.entitle(title)
        outcome = run_study(store, study, open_executor, _progress(update))
    if outcome.others:
        print_message(
            "note",
            f"{outcome.others} stored runs of another program version or model are not used",
        )
    for failure in outcome.failures[:MOST_SHOWN]:
        print_message("error", f"{failure.task}: {failure.reason}")
    if outcome.failures:
        print_message(
            "error",
            f"{count(len(outcome.failures), 'run')} missing; all others are stored, and the same"
            " command tries again",
        )
    record = {
        "title": title,
        "computed": outcome.computed,
        "found": outcome.found,
        "failed": len(outcome.failures),
    }
    return record, FAILED if outcome.failures else 0


def _finish(
    folder: str, edition: Edition | None, record: dict[str, Any], export: str | None, as_json: bool
) -> None:
    """Rebuild the report of an edition (by default the one written last), export it if asked, and
    say what was written.
    """
    with Store(folder) as store:
        shown = store.latest() if edition is None else store.widened(edition)
        written = write_report(folder, shown) + (
            store.export(export, shown) if export is not None else []
        )
    counts = (
        f"{record['title']}\n{count(record['computed'], 'run')} computed, {record['found']} found"
        " in the store\n"
        if record
        else ""
    )
    show(
        {**record, "files": [str(path) for path in written]},
        f"{counts}{written[0]} and {len(written) - 1} more files written",
        as_json,
    )


COLUMNS = ("problem", "method", "variant", "inner", "atoms", "alpha0", "state")


def _list(study: Study, title: str, folder: str | None, as_json: bool) -> None:
    done = _stored(study, folder)
    rows = [
        (
            f"{t.domain}/{t.problem}",
            t.method,
            t.variant or "-",
            t.inner or "-",
            t.atoms,
            t.alpha0,
            "stored" if t in done else "missing",
        )
        for t in study.tasks
    ]
    text = (
        f"{title}\n\n{fitted_table(COLUMNS, rows)}\n{count(len(rows), 'run')}, {len(done)} stored"
    )
    show({"runs": [dict(zip(COLUMNS, row)) for row in rows], "stored": len(done)}, text, as_json)


def _stored(study: Study, folder: str | None) -> Collection[StudyTask]:
    if folder is None or not os.path.exists(os.path.join(folder, FILE_NAME)):
        return ()
    with Store(folder) as store:
        return store.finished(study.edition) & set(study.tasks)


def _progress(update: Callable[[str], None]) -> Progress:
    """Tells runs done, their rate, and the time left by the share of the effort that is done."""
    began = monotonic()

    def show_progress(done: int, share: float) -> None:
        passed = max(monotonic() - began, 1e-9)
        rest = f", about {passed * (1 / share - 1):.0f} s left" if share > 0 else ""
        update(f"{done} runs done, {done / passed:.1f} per second, {share:.0%} of the work{rest}")

    return show_progress

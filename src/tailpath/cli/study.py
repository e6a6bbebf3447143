"""`tailpath study --out DIR`, and `tailpath report DIR` for its figures and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from importlib.util import find_spec
from time import monotonic
from types import SimpleNamespace
from typing import Any

import click

from tailpath.cli.application import print_message
from tailpath.cli.common import ALPHA, Command, WholeNumber, under
from tailpath.cli.output import Output, fitted_table, json_option, print_result, reported
from tailpath.cli.planning import method_option
from tailpath.errors import FormatError, OptionError
from tailpath.options import Progress, processors
from tailpath.progress import progress_line
from tailpath.study.design import read_design, restricted, tasks
from tailpath.study.paper.claims import paper
from tailpath.study.paper.report import write_report
from tailpath.study.runner import Study, cluster, prepare, processes, run_study
from tailpath.study.store import FILE_NAME, NEEDS_PYARROW, Edition, Store, StudyTask
from tailpath.texts import count

FAILED = 1
MAX_SHOWN = 10


@click.command(cls=Command)
@click.option("--out", "folder", type=click.Path(file_okay=False), help="Where all of it goes.")
@under(
    "What is studied",
    click.option("--design", help="A study of your own (.toml); the paper's by default."),
    click.option("--only", multiple=True, help="This domain or problem, such as gridworld/5x5."),
    click.option("--model", "models", multiple=True, help="A file or scheme:text."),
    method_option("methods", multiple=True, help="This method of the register."),
    click.option("--variant", "variants", multiple=True, help="improved, published or printed."),
    click.option("--atoms", type=int, multiple=True, help="This number of atoms."),
    click.option("--alpha0", type=ALPHA, multiple=True, help="This least atom."),
    click.option("--gamma", type=float, help="Discount; no optimum is computed then."),
    click.option(
        "--lp",
        type=click.Choice(("default", "full", "none")),
        default="default",
        help="Linear programs of CVaRVILI: to convergence on small problems and timed on sweeps"
        " elsewhere; to convergence everywhere; not at all.",
    ),
    click.option("--no-simulation", is_flag=True, help="Leave the Monte Carlo comparisons out."),
)
@under(
    "Where it runs",
    click.option(
        "--workers", type=WholeNumber(1), help="Processes on this machine; by default one per core."
    ),
    click.option("--cluster", "address", help="A Dask scheduler, such as tcp://host:8786."),
)
@under(
    "Output",
    click.option("--list", "only_list", is_flag=True, help="List the runs; compute nothing."),
    click.option("--figures", "only_report", is_flag=True, help="Only rebuild the report."),
    click.option("--export", type=click.Choice(("csv", "parquet")), help="Write the rows, too."),
    json_option,
)
def study_command(**given: Any) -> int:
    """Repeat the paper's experiments on this program's domains, and add the optimum; or study
    models and methods of your own.

    Every finished run is stored at once in DIR/runs.sqlite. Stop it at any time and start it again:
    only what is missing is computed. Runs of another program version or model are never mixed with
    these.

    Examples
    --------
    tailpath study --out build/study --only gridworld/5x5
    tailpath study --list --model river:5x5 --method quantile
    """
    asked = SimpleNamespace(**given)
    if asked.workers is not None and asked.address is not None:
        raise click.UsageError(
            "--workers is for this machine and --cluster for others; give one of them"
        )
    if asked.export == "parquet" and find_spec("pyarrow") is None:
        raise OptionError(NEEDS_PYARROW)  # before hours of work, not after
    if asked.folder is None and not asked.only_list:
        raise click.UsageError("Missing option '--out'")
    if asked.only_report:
        _finish(asked, None, {})
        return 0
    design = paper() if asked.design is None else read_design(asked.design)
    limits = ("only", "models", "methods", "variants", "atoms", "alpha0", "gamma")
    chosen = restricted(design, **{name: given[name] for name in limits})
    study = prepare(chosen, tasks(chosen, lp=asked.lp, simulation=not asked.no_simulation))
    for note in sorted({note for model in study.models.values() for note in model.notes}):
        print_message("note", note)
    if asked.only_list:
        _list(asked, study)
        return 0
    record = _run(asked, study)
    _finish(asked, study.edition, record)
    return FAILED if record["failed"] else 0


def _run(asked: SimpleNamespace, study: Study) -> dict[str, Any]:
    title = study.design.title

    def executor() -> Any:
        if asked.address is not None:
            return cluster(asked.address)
        return processes(asked.workers or processors())

    try:
        with Store(asked.folder, create=True) as store, progress_line() as update:
            store.entitle(title)
            outcome = run_study(store, study, executor, _progress(update))
    except KeyboardInterrupt:
        print_message("note", "finished runs are stored, and the same command goes on from there")
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
            f"{count(failed, 'run')} missing; all others are stored, and the same command tries"
            " again",
        )
    counts = {"computed": outcome.computed, "found": outcome.found, "failed": failed}
    return {"title": title, **counts}


def _finish(asked: SimpleNamespace, edition: Edition | None, record: dict[str, Any]) -> None:
    """Rebuild the report of an edition (by default the one written last), export it if asked, and
    say what was written.
    """
    with Store(asked.folder) as store:
        shown = store.latest() if edition is None else store.widened(edition)
        written = write_report(store.folder, shown)
        written += store.export(asked.export, shown) if asked.export is not None else []
    counts = (
        f"{record['title']}\n{count(record['computed'], 'run')} computed, {record['found']} found"
        " in the store\n"
        if record
        else ""
    )
    text = f"{counts}{written[0]} and {len(written) - 1} more files written"
    print_result({**record, "files": [str(path) for path in written]}, text, asked.as_json)


COLUMNS = ("problem", "method", "variant", "inner", "atoms", "alpha0", "state")


def _list(asked: SimpleNamespace, study: Study) -> None:
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
    text = f"{study.design.title}\n\n{table}\n{count(len(rows), 'run')}, {len(done)} stored"
    record = {"runs": [dict(zip(COLUMNS, row)) for row in rows], "stored": len(done)}
    print_result(record, text, asked.as_json)


def _progress(update: Callable[[str], None]) -> Progress:
    """Tells runs done, their rate, and the time left by the share of the effort that is done."""
    began = monotonic()

    def show_progress(done: int, share: float) -> None:
        passed = max(monotonic() - began, 1e-9)
        rest = f", about {passed * (1 / share - 1):.0f} s left" if share > 0 else ""
        rate = f"{done / passed:.1f} per second"
        update(f"{count(done, 'run')} done, {rate}, {share:.0%} of the work{rest}")

    return show_progress


def stored_study(text: str) -> str:
    if not os.path.isdir(text):
        raise FormatError(f"{text}: no such folder")
    return text


@click.command(cls=Command)
@click.argument("folder", metavar="DIR", type=stored_study)
@reported
def report_command(folder: str) -> Output:
    """Rebuild study.md, the figures and the tables of a study in DIR from its stored runs; nothing
    is solved or evaluated.

    Where DIR holds runs of several program versions, those of the version that wrote last are
    shown.

    Examples
    --------
    tailpath report build/study
    tailpath report build/study --json
    """
    written = write_report(folder)
    record = {"files": [str(path) for path in written]}
    return record, f"{written[0]} and {len(written) - 1} more files written"

"""The group of commands, and how each handles errors, warnings, interrupts and closed pipes.

Exit codes: 0, 2 for bad input (one line on standard error, never a traceback), 130 when
interrupted, 143 when terminated (SIGTERM). Results go to standard output, everything else to
standard error.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import Any

import click

from tailpath.errors import (
    EvaluationInterrupted,
    OptionError,
    PolicyError,
    TailpathError,
    TailpathWarning,
)
from tailpath.progress import CLEAR, end_line
from tailpath.registers import Register, instance_of
from tailpath.texts import with_short_names
from tailpath.version import __version__

PIPE_CLOSED, BAD_INPUT = 1, 2
INTERRUPTED, TERMINATED = 130, 143
#: Errors of the system that keep output from being written.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

#: Every command with the module of `tailpath.cli` that has it (as `info_command`) and its line of
#: help, in the order of `--help`.
COMMANDS = {
    "info": ("models", "Sizes, cost unit, goals and dead ends of a model."),
    "solve": ("solve", "Find the best policy of a model."),
    "frontier": ("frontier", "The price of safety: least mean against a risk."),
    "evaluate": ("policies", "The exact VaR and CVaR of a policy."),
    "compare": ("compare", "Predicted, deployed and optimal CVaR side by side."),
    "show": ("policies", "The decisions of a policy, in words."),
    "diff": ("policies", "Where two policies part ways."),
    "explain": ("policies", "The worst runs of a policy, and their causes."),
    "page": ("compare", "One page that explains a model, as HTML."),
    "simulate": ("policies", "Monte Carlo runs of a policy."),
    "convert": ("models", "Write a model in another format."),
    "split": ("ranks", "Cut a model into parts for the ranks of MPI."),
    "warm-up": ("upkeep", "Compile everything now instead of on first use."),
}

#: Commands of other packages are found by their entry points.
REGISTER = Register(
    "command",
    "click.Command",
    "tailpath.commands",
    {
        name: f"tailpath.cli.{module}:{name.replace('-', '_')}_command"
        for name, (module, _) in COMMANDS.items()
    },
    instance_of(click.Command),
)
#: Commands of a package of ours that is installed on its own.
ELSEWHERE = dict.fromkeys(("study", "report"), "forpecvar")


class LazyGroup(click.Group):
    """Imports a command when it is called, so that `--help` costs next to nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return REGISTER.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = REGISTER.find(cmd_name)
        if command is None and cmd_name in ELSEWHERE:
            package = ELSEWHERE[cmd_name]
            raise OptionError(
                f"the command {cmd_name} comes with the package {package}, which is not installed:"
                f" pip install ./papers/{package} in a checkout of tailpath"
            )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = args and (args[0] in COMMANDS or args[0] in ELSEWHERE)
        names = [] if known else self.list_commands(ctx)
        near = get_close_matches(args[0], names, n=1) if args else []
        if near and near[0] != args[0]:
            ctx.fail(f"No such command {args[0]!r}; did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The inherited method would import every command of ours for its help text.
        with formatter.section("Commands"):
            rows = [(name, text) for name, (_, text) in COMMANDS.items()]
            for name in self.list_commands(ctx)[len(COMMANDS) :]:
                with suppress(OptionError):  # it cannot be loaded, and says why when it is called
                    command = self.get_command(ctx, name)
                    rows.append((name, command.get_short_help_str(80) if command else ""))
            formatter.write_dl(rows)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="tailpath", message="%(prog)s %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Exact tail risk for stochastic shortest paths.

    A MODEL is a file (its suffix decides the format) or a string such as gridworld:14x16,
    river:30x10 or textbook:geometric. Costs are minimised; alpha is the mass of the worst tail;
    CVaR at alpha 1 is the mean.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


#: The policies that the command has read: an error in one may show much later, and the message
#: must name it.
policy_files: list[str] = []


def main(arguments: Sequence[str] | None = None) -> int:
    policy_files.clear()
    if sys.stderr is None:  # closed by the caller, and a file that is opened later must not take it
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    with _ended_like_interrupted() as asked_to_end:
        code = _run(arguments)
        return TERMINATED if asked_to_end and code == INTERRUPTED else code


@contextmanager
def _ended_like_interrupted() -> Iterator[list[int]]:
    """Let SIGTERM do what Ctrl-C does, so that no unfinished file stays; yields a list that is
    filled then. An existing handler stays.
    """
    asked: list[int] = []

    def end(number: int, frame: Any) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    ours = ours and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, end)
    try:
        yield asked
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(arguments: Sequence[str] | None) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("always", TailpathWarning)
        warnings.filterwarnings("ignore", "alpha is the mass")  # the option has said so
        plain_warning, told = warnings.showwarning, set[str]()

        def one_line(message: Warning | str, category: type[Warning], *position: object) -> None:
            if issubclass(category, TailpathWarning):
                if str(message) not in told:
                    told.add(str(message))
                    print_message("warning", str(message))
            else:
                plain_warning(message, category, *position)  # type: ignore[arg-type]

        warnings.showwarning = one_line  # type: ignore[assignment]
        try:
            result = group.main(arguments, prog_name="tailpath", standalone_mode=False)
            if sys.stdout is not None:  # closed by the caller
                sys.stdout.flush()
            return result if isinstance(result, int) else 0
        except Exception as error:
            code = _explain(error)
            if code is None:
                raise
            return code


def print_message(kind: str, text: str) -> None:
    """Print one line on standard error; a line of progress is removed, and shown again later."""
    if kind == "error":
        end_line()  # for good
    elif sys.stderr.isatty():
        sys.stderr.write(CLEAR)
    what = f"{kind}:"
    if kind == "error" and in_colour(sys.stderr):
        what = click.style(what, fg="red", bold=True)
    line = printable(with_short_names(" ".join(text.split())))
    click.echo(f"tailpath: {what} {line}", err=True)


def in_colour(stream: Any) -> bool:
    """Whether a stream is a terminal whose user wants colours (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream is not None and bool(stream.isatty())


def printable(text: str) -> str:
    """The text with characters that would control a terminal written as escapes: names come from
    files.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] if c != "\x7f" else "\\u007f"
        for c in text
    )


def _explain(error: Exception) -> int | None:
    """Print what was wrong, and return the exit code; None for a bug of ours, which deserves its
    traceback.
    """
    if isinstance(error, BrokenPipeError):
        _drop_output()  # the reader has gone, as in `tailpath info model | head`
        return PIPE_CLOSED
    if isinstance(error, click.Abort):
        cause = error.__cause__  # click puts its own error in the place of a KeyboardInterrupt
        known = isinstance(cause, EvaluationInterrupted)
        print_message("error", str(cause) if known else "interrupted")
        return INTERRUPTED
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "tailpath"
        text = f"{error.format_message().rstrip('.')} (see '{where} --help')"
    elif isinstance(error, (TailpathError, click.ClickException)):
        text = str(error)
        unnamed = policy_files and not text.startswith(tuple(policy_files))
        if isinstance(error, PolicyError) and unnamed:
            text = f"{' or '.join(policy_files)}: {error}"
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
    elif isinstance(error, OSError) and error.errno in UNWRITABLE:
        text = f"the output cannot be written: {error.strerror}"
        _drop_output()
    elif isinstance(error, MemoryError):
        text = f"not enough memory: {error}"
    else:
        return None
    print_message("error", text)
    return BAD_INPUT


def _drop_output() -> None:
    """Discard buffered output, of which the interpreter would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""What the commands share: the MODEL argument with its options, alpha, policies, files to write."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

import tailpath
from tailpath.cli.application import policy_files, print_message
from tailpath.domains.register import FORMATS, find_domain, schemes
from tailpath.errors import FormatError, OptionError
from tailpath.formats.files import refuse_unwritable
from tailpath.formats.reading import options as reading_options
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import confidence_note, percent_hint
from tailpath.pictures.progress import progress_line
from tailpath.risk.measure import parse_number_or_percent

Command = Callable[..., Any]
Request = TypeVar("Request")
#: Commands that take no intervals.
KNOWN_ALONE = ("show", "diff", "explain", "simulate")

# ---------------------------------------------------------------------- arguments and options


def alpha(text: str) -> float:
    """The type of an option that takes the mass of the worst tail: a number in (0, 1], or a
    percentage.
    """
    try:
        value = parse_number_or_percent(str(text))  # a default is a number
    except OptionError as error:
        raise click.BadParameter(str(error)) from None
    if not 0 < value <= 1:
        raise click.BadParameter(f"{text} does not lie in (0, 1]{percent_hint(value)}")
    note = confidence_note(value)
    if note is not None:
        print_message("note", note)
    return value


def out_file(*suffixes: str) -> Callable[[str], str]:
    """The type of an option that takes the path of a file to write: what would prevent that is
    found before the work is done.
    """

    def path(text: str) -> str:
        if suffixes and not text.lower().endswith(suffixes):
            raise click.BadParameter(f"{text}: the file must end with {' or '.join(suffixes)}")
        try:
            refuse_unwritable(text)
        except FormatError as error:
            raise click.BadParameter(str(error)) from None
        return text

    return path


def refuse_same_file(output: str | None, source: str) -> None:
    """A result must not replace the model it was computed from."""
    if (
        output is not None
        and os.path.exists(output)
        and os.path.exists(source)
        and os.path.samefile(output, source)
    ):
        raise click.UsageError(f"{output} is the model itself; write the result to another file")


def reward_and_cost(text: str) -> tuple[float, float]:
    """The type of an option that takes two numbers, `R=C`."""
    reward, equals, cost = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not of the form R=C")
    return _float(reward), _float(cost)


def discount(text: str) -> Fraction | None:
    """The type of an option that takes a discount, a number or a fraction in (0, 1]; 1 is none."""
    try:
        gamma = as_fraction(text)
    except (ValueError, ArithmeticError):
        gamma = Fraction(0)
    if not 0 < gamma <= 1:
        raise click.BadParameter(f"{text} does not lie in (0, 1]")
    return gamma if gamma < 1 else None


def name_and_value(text: str) -> tuple[str, str]:
    """The type of an option that takes `N=V`."""
    left, equals, right = (part.strip() for part in text.partition("="))
    if not (left and equals and right):
        raise click.BadParameter(f"{text!r} is not of the form N=V")
    return left, right


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number") from None


def _model_option(option: Field[Any]) -> Callable[[Command], Command]:
    """The flag of an option of `read`; the word for its value, or its absence, says what kind of
    value that is.
    """
    flag, word, text = (option.metadata[key] for key in ("flag", "word", "help"))
    many = word in ("R=C", "N=V", "STATES")
    kind = {"R=C": reward_and_cost, "N=V": name_and_value, "C": float, "P": float}.get(word, str)
    if not word:
        return click.option(flag, option.name, cls=ModelOption, is_flag=True, help=text)
    return click.option(
        flag, option.name, cls=ModelOption, type=kind, multiple=many, metavar=word, help=text
    )


class ModelOption(click.Option):
    """An option of reading or ending a model: the same for all commands, and told apart from
    theirs.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return None

    def short(self) -> str:
        """The flag with the word for its value."""
        return f"{self.opts[0]} {self.metavar}" if self.metavar else self.opts[0]


class ModelCommand(click.Command):
    """A command about a model: its help tells its own options first, and those of reading models in
    short.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        shared = [param.short() for param in self.get_params(ctx) if isinstance(param, ModelOption)]
        if shared and ctx.info_name != "info":
            with formatter.section("How the MODEL is read and ended (see tailpath info --help)"):
                formatter.write_text("  ".join(shared))
        elif shared:
            with formatter.section("How the MODEL is read and ended, the same for all commands"):
                every = [param for param in self.get_params(ctx) if isinstance(param, ModelOption)]
                formatter.write_dl([(param.short(), param.help or "") for param in every])


def most_option(default: int, what: str) -> Callable[[Command], Command]:
    """The flag that says how much is shown."""
    return click.option(
        "--most",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        metavar="N",
        help=what,
    )


def takes_model(command: Command) -> Command:
    """Give a command the argument MODEL and its options; it is called with `ssp`, the model read,
    and `source`, its name as typed.

    What the reader assumed (`ssp.notes`) is said on standard error. A command with a parameter
    `gamma` gets the discount, unless it is part of the model, and None where there is none. A
    parameter called like an option of `read` is the command's own.
    """

    @functools.wraps(command)
    def with_model(*args: Any, model: str, **options: Any) -> Any:
        reading = {option.name: options.pop(option.name) for option in flags}
        endings = {ending.name: options.pop(ending.name) for ending in ENDINGS}
        if discounts:
            # With a limit of steps the discount is part of the model, for every method and policy
            # alike.
            options["gamma"] = None if endings["within"] is not None else endings.pop("gamma")
        ssp = read_model(model, endings, **reading)
        verb = click.get_current_context().info_name
        if verb in KNOWN_ALONE and isinstance(ssp, IntervalSSP) and not ssp.is_certain:
            raise click.UsageError(
                f"{verb} needs known probabilities, and the model has intervals, which info, solve,"
                " evaluate, compare, page and convert take"
            )
        return command(*args, ssp=ssp, source=model, **options)

    own = inspect.signature(command).parameters
    discounts, flags = (
        "gamma" in own,
        [option for option in reading_options() if option.name not in own],
    )
    wrapped: Command = with_model
    for ending in reversed(ENDINGS):
        wrapped = click.option(
            ending.flag, ending.name, cls=ModelOption, help=ending.help, **ending.settings
        )(wrapped)
    for option in reversed(flags):
        wrapped = _model_option(option)(wrapped)
    return click.argument("model", shell_complete=complete_model)(wrapped)


def request_of(kind: type[Request], given: Mapping[str, Any], others: str) -> Request:
    """A record of what the command line asks for; what it has no field for is its field
    `others`.
    """
    named = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    rest = {name: value for name, value in given.items() if name not in named}
    return kind(**{name: given[name] for name in given.keys() & named}, **{others: rest})


def complete_model(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What the shell offers for a MODEL: the bundled problems of a scheme, or schemes and files.

    `application.py` joins what Bash splits at colons.
    """
    scheme, colon, _ = incomplete.partition(":")
    domain = find_domain(scheme) if colon else None
    if domain is not None:
        known = [f"{scheme}:{problem}" for problem in domain.problems]
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]
    known = [f"{each}:" for each in (*FORMATS, *schemes()) if f"{each}:".startswith(incomplete)]
    # Files first: in Bash they replace what was offered before.
    return [
        CompletionItem(incomplete, type="file"),
        *map(CompletionItem, known if incomplete else []),
    ]


def complete_file(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What the shell offers for a POLICY: files."""
    return [CompletionItem(incomplete, type="file")]


class Ending(NamedTuple):
    """A flag that makes a goal sure, or goes with one that does."""

    name: str
    flag: str
    help: str
    settings: dict[str, Any]


ENDINGS = (
    Ending(
        "give_up", "--give-up", "Let every state end the run at a price of C.", {"metavar": "C"}
    ),
    Ending(
        "given_arrival",
        "--given-arrival",
        "Arrive as surely as possible, and count the runs that arrive.",
        {"is_flag": True},
    ),
    Ending(
        "within",
        "--within",
        "End every run after N steps; late ones never arrive.",
        {"type": click.IntRange(min=1), "metavar": "N"},
    ),
    Ending("otherwise", "--otherwise", "With --within, late runs pay C instead.", {"metavar": "C"}),
    Ending(
        "gamma",
        "--gamma",
        "Discount: costs at step t count G^t times.",
        {"type": discount, "metavar": "G"},
    ),
)


def _ended(ssp: SSP, endings: Mapping[str, Any]) -> SSP:
    """The model with the ends asked for: the limit of steps first, since the others look at what it
    leaves open.
    """
    if endings.get("within") is not None:
        ssp = tailpath.within(
            ssp, endings["within"], endings["otherwise"], gamma=endings["gamma"] or 1
        )
    elif endings.get("gamma") is not None:
        raise click.UsageError(
            "a discount is exact here over a bounded number of steps: give --within N, too"
        )
    elif endings.get("otherwise") is not None:
        raise click.UsageError("--otherwise is the price of being late, and goes with --within N")
    if endings.get("give_up") is not None:
        ssp = tailpath.give_up(ssp, endings["give_up"])
    return tailpath.given_arrival(ssp) if endings.get("given_arrival") else ssp


def read_model(model: str, endings: Mapping[str, Any] | None = None, **options: Any) -> SSP:
    """Read a model as the command line names it, end it in the ways asked for, and repeat its notes
    on standard error.
    """
    reading: dict[str, Any] = {
        name: dict(value) if isinstance(value, tuple) and name != "goals" else value
        for name, value in options.items()
    }
    with progress_line() as update:
        ssp = tailpath.read(
            model,
            **reading,
            progress=lambda done, share: update(
                f"reading {model}: {share:.0%} of {done / share / 1e6:.0f} MB"
            ),
        )
    ssp = _ended(ssp, endings or {})
    for note in ssp.notes:
        print_message("note", note)
    return ssp


loose_option = click.option(
    "--loose",
    is_flag=True,
    help="Take a policy made for another model with the same states and actions.",
)


def policy_argument(policy: str, ssp: Any, loose: bool = False) -> tailpath.Policy:
    """Read a policy as the command line names it: a file, or a method that needs no alpha, such as
    `expected` for the least expected cost.
    """
    methods = tailpath.methods
    if policy in methods.method_names() and not methods.find_method(policy).risk:
        return methods.find_method(policy).make(ssp, None, {}).policy(1.0)
    policy_files.append(policy)
    return tailpath.read_policy(policy, ssp, strict=not loose)

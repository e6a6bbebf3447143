"""Shared by the commands: the argument MODEL with its options, alpha, policies, files to write."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from time import perf_counter
from typing import Any

import click
from click.types import FuncParamType

import tailpath
from tailpath.cli.application import policy_files, print_message
from tailpath.errors import FormatError, OptionError
from tailpath.formats.files import refuse_unwritable
from tailpath.formats.registry import options as reading_options
from tailpath.kernels.compile_time import compiling_seconds
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import Option, confidence_note, percent_hint
from tailpath.progress import AFTER, progress_line
from tailpath.registers import folder_of
from tailpath.risk.measure import Limit, Measure, parse_number_or_percent
from tailpath.risk.measures import parse, parse_limit

Called = Callable[..., Any]
Decorator = Callable[[Called], Called]
#: Commands that take no intervals.
WITHOUT_INTERVALS = ("show", "diff", "explain", "page", "simulate")


# ---------------------------------------------------------------------- arguments and options


def alpha(text: str) -> float:
    """The type of an option that takes a number in (0, 1], or a percentage."""
    try:
        found = parse_number_or_percent(str(text))  # a default is a number
    except OptionError as error:
        raise click.BadParameter(str(error)) from None
    if not 0 < found <= 1:
        raise click.BadParameter(f"{text} does not lie in (0, 1]{percent_hint(found)}")
    note_confidence(found)
    return found


ALPHA = FuncParamType(alpha)


def note_confidence(mass: float) -> None:
    note = confidence_note(mass)
    if note is not None:
        print_message("note", note)


def measure(text: str) -> Measure:
    """The type of an option that takes a measure of risk."""
    found = parse(text)
    note_confidence(found.finest_alpha)
    return found


def limit(text: str) -> Limit:
    """The type of an option that takes a limit on a measure."""
    return parse_limit(text)


def timed(work: Called, *args: Any, **named: Any) -> tuple[Any, float, float]:
    """The result of a call, its seconds, and how many of these were compiling."""
    begin, before = perf_counter(), compiling_seconds()
    found = work(*args, **named)
    return found, perf_counter() - begin, compiling_seconds() - before


def out_file(*suffixes: str) -> Callable[[str], str]:
    """The type of an option that takes a file to write; whether it can be written is checked before
    the work is done.
    """

    def file(text: str) -> str:
        if suffixes and not text.lower().endswith(suffixes):
            raise click.BadParameter(f"{text}: the file name must end with {' or '.join(suffixes)}")
        try:
            refuse_unwritable(text)
        except FormatError as error:
            raise click.BadParameter(str(error)) from None
        return text

    return file


def picture(file: str) -> str:
    """The type of an option that takes a picture to write."""
    folder_of("matplotlib", "plot")
    return out_file(".png", ".pdf", ".svg")(file)


def refuse_same_file(output: str | None, source: str) -> None:
    """A result must not replace the model it was computed from."""
    exist = output is not None and os.path.exists(output) and os.path.exists(source)
    if exist and os.path.samefile(str(output), source):
        raise click.UsageError(f"{output} is the model itself; write the result to another file")


def discount(text: str) -> Fraction | None:
    """The type of an option that takes a discount, a number or a fraction in (0, 1]; None for 1."""
    try:
        gamma = as_fraction(text)
    except (ValueError, ArithmeticError):
        gamma = Fraction(0)
    if not 0 < gamma <= 1:
        raise click.BadParameter(f"{text} does not lie in (0, 1]")
    return gamma if gamma < 1 else None


def pairs_of(word: str, kind: Callable[[str], Any]) -> Callable[[str], list[tuple[Any, Any]]]:
    """The type of an option that takes pairs, such as N=V, with commas between."""

    def pairs(text: str) -> list[tuple[Any, Any]]:
        parts = [part.partition("=") for part in re.split(r",(?=\s*[\w.+-]+\s*=)", text)]
        if not all(left.strip() and right.strip() for left, _, right in parts):
            raise click.BadParameter(f"{text!r} is not of the form {word}")
        return [(kind(left.strip()), kind(right.strip())) for left, _, right in parts]

    return pairs


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number") from None


#: The types of options, by their word in the help.
PAIRS: dict[str, Any] = {"R=C": pairs_of("R=C", _float), "N=V": pairs_of("N=V", str)}


class WholeNumber(click.IntRange):
    """The type of an option that takes a whole number of at least `min`."""

    name = "n"


def flag(option: Option, cls: type[click.Option] = click.Option) -> click.Option:
    """The flag of an option of a method or reader; its value is None if the user does not give it,
    and the default is then that of the option.
    """
    names = [*(option.flag.split() or [f"--{option.name.replace('_', '-')}"]), option.name]
    if option.kind is bool:
        return cls(names, is_flag=True, default=None, help=option.help)
    shown = "" if option.default is None else f"  [default: {option.default}]"
    return cls(
        names,
        type=_type(option),
        multiple=option.several,
        default=None,
        metavar=option.word or None,
        help=option.help + shown,
    )


def flag_of(option: Option) -> Decorator:
    """Give a command the flag of an option."""

    def with_flag(command: Called) -> Called:
        vars(command).setdefault("__click_params__", []).append(flag(option))
        return command

    return with_flag


def _type(option: Option) -> Any:
    if option.choices:
        return click.Choice(option.choices)
    if option.least is not None:
        return WholeNumber(option.least)
    if option.mass:
        return ALPHA
    return PAIRS.get(option.word, option.kind)


def under(heading: str, *options: Decorator) -> Decorator:
    """Give a command some options, listed below a heading of its help."""

    def with_options(command: Called) -> Called:
        known = len(getattr(command, "__click_params__", ()))
        for option in reversed(options):
            command = option(command)
        for param in vars(command)["__click_params__"][known:]:
            param.heading = heading
        return command

    return with_options


#: Flags that make the goal certain, and those that go with them.
ENDINGS = (
    Option("give_up", str, None, "Allow stopping in any state, at cost C.", "C"),
    Option(
        "given_arrival", bool, None, "Maximise the probability of arriving, and condition on it."
    ),
    Option(
        "within", int, None, "End every run after N steps; late runs never arrive.", "N", least=1
    ),
    Option("otherwise", str, None, "With --within, late runs pay C instead.", "C"),
    Option("gamma", discount, None, "Discount: costs at step t count G^t times.", "G"),
)


class Command(click.Command):
    """A command whose help has headings (`under`) and the examples of its docstring."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        text = inspect.cleandoc(settings["help"])
        settings["help"], _, examples = text.partition("\n\nExamples\n--------\n")
        super().__init__(name, **settings, context_settings={"show_default": True})
        self.examples = examples.splitlines()

    def invoke(self, ctx: click.Context) -> Any:
        with progress_line(str(ctx.info_name), after=AFTER):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if param.param_type_name == "option" else None
            if record is not None:
                found.setdefault(getattr(param, "heading", "Options"), []).append(record)
        for heading, records in found.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class ModelOption(click.Option):
    """An option of reading or ending a model; only `tailpath info --help` describes it."""

    heading = "How the MODEL is read and how its runs end, for all commands"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return super().get_help_record(ctx) if ctx.info_name == "info" else None


class ModelCommand(Command):
    """A command with the argument MODEL and its options, called with `ssp`, the model read, and
    `source`, its name as typed.

    A parameter `gamma` gets the discount, None if there is none or if it is part of the model. A
    parameter with the name of an option of `read` belongs to the command. The help has the
    command's own options first, and a short list of those for reading models.
    """

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        taken = {param.name for param in self.params}
        self.shared = [
            flag(each, ModelOption)
            for each in (*reading_options(), *ENDINGS)
            if each.name not in taken
        ]
        model = click.Argument(["model"], type=click.Path(readable=False))
        self.params = [model, *self.params, *self.shared]
        self.callback = with_model(self.callback, [each.name for each in self.shared])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        if ctx.info_name != "info":
            with formatter.section(
                "How the MODEL is read and how its runs end (see tailpath info --help)"
            ):
                names = (f"{each.opts[0]} {each.metavar or ''}".strip() for each in self.shared)
                formatter.write_text("  ".join(names))


def with_model(command: Any, shared: Sequence[str]) -> Called:
    """The command, called with the model that its shared options describe."""
    discounts = "gamma" in inspect.signature(command).parameters

    def called(model: str, **given: Any) -> Any:
        options = {name: given.pop(name) for name in shared}
        endings = {ending.name: options.pop(ending.name) for ending in ENDINGS}
        if discounts:
            # With a limit of steps the discount is part of the model, for every method and policy
            # alike.
            given["gamma"] = None if endings["within"] is not None else endings.pop("gamma")
        ssp = read_model(model, endings, **options)
        verb = click.get_current_context().info_name
        if verb in WITHOUT_INTERVALS and isinstance(ssp, IntervalSSP) and not ssp.is_certain:
            raise click.UsageError(
                f"{verb} needs known probabilities, and the model has intervals; info, solve,"
                " evaluate, compare and convert accept them"
            )
        return command(ssp=ssp, source=model, **given)

    return called


def method_option(*names: str, **settings: Any) -> Decorator:
    """The option `--method`."""
    return click.option("--method", *names, metavar="NAME", **settings)


#: The argument POLICY, for which the shell offers files.
given_policy = click.argument("policy", type=click.Path())


def _ended(ssp: SSP, endings: Mapping[str, Any]) -> SSP:
    """The model with its endings; the limit of steps first, since the others depend on it."""
    if endings["within"] is not None:
        ssp = tailpath.within(
            ssp, endings["within"], endings["otherwise"], gamma=endings["gamma"] or 1
        )
    elif endings.get("gamma") is not None:
        raise click.UsageError(
            "with a discount the number of steps must be bounded here: give --within N as well"
        )
    elif endings["otherwise"] is not None:
        raise click.UsageError("--otherwise is the cost of being late, and needs --within N")
    if endings["give_up"] is not None:
        ssp = tailpath.give_up(ssp, endings["give_up"])
    return tailpath.given_arrival(ssp) if endings["given_arrival"] else ssp


def read_model(model: str, endings: Mapping[str, Any], **options: Any) -> SSP:
    """Read a model, apply the endings, and print its notes on standard error."""
    reading: dict[str, Any] = {
        name: dict(chain(*value)) if isinstance(value, tuple) and name != "goals" else value
        for name, value in options.items()
        if value is not None
    }
    with progress_line() as update:
        ssp = tailpath.read(
            model,
            **reading,
            progress=lambda done, share: update(
                f"reading {model}: {share:.0%} of {done / share / 1e6:.0f} MB"
            ),
        )
    ssp = _ended(ssp, endings)
    for note in ssp.notes:
        print_message("note", note)
    return ssp


#: The user's policies.
POLICIES = click.option(
    "--policy",
    "files",
    metavar="FILE",
    multiple=True,
    help="Add a policy of yours, named after its file (repeatable).",
)


def policy_output(text: str) -> Decorator:
    """The option that saves a policy."""
    return click.option("-o", "--output", type=out_file(".json", ".npz"), help=text)


def policy_argument(policy: str, ssp: Any) -> tailpath.Policy:
    """Read a policy as the command line names it: a file, or a method that needs no alpha, such as
    `expected` for the least expected cost.
    """
    methods = tailpath.methods
    words = [word for word in methods.method_names() if not methods.find_method(word).risk]
    if policy in words:
        return methods.find_method(policy).make(ssp, None, {}).policy(1.0)
    if not os.path.splitext(policy)[1] and ":" not in policy:
        raise OptionError(
            f"{policy}: not a policy; give a .json or .npz file made by `tailpath solve --output`,"
            f" or the word {' or '.join(words)}"
        )
    policy_files.append(policy)
    return tailpath.read_policy(policy, ssp)


# ---------------------------------------------------------------------- several alphas


class ManyAlphas(ModelCommand):
    """A command whose `--alpha` may be followed by several numbers, or by some with commas between;
    it gets `alphas`, each once, smallest first.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        remaining = super().parse_args(ctx, list(_one_each(args)))
        ctx.params["alphas"] = tuple(sorted(set(ctx.params.get("alphas") or ())))
        return remaining


def several_alphas(default: Sequence[float] | None = None) -> Decorator:
    """The option `--alpha` of such a command, which must be given if there is no default."""
    return click.option(
        "--alpha",
        "alphas",
        type=ALPHA,
        metavar="A...",
        multiple=True,
        default=default,
        required=default is None,
        help="Masses of the worst tail, in (0, 1], one or more.",
    )


def _one_each(args: list[str]) -> Iterator[str]:
    """Repeat `--alpha` before each number of its list."""
    listing = wanted = False  # whether a list goes on, and whether it has to
    for arg in args:
        option, _, values = arg.partition("=")
        if option == "--alpha":
            listing, wanted = True, not values
        elif listing and (wanted or _is_list(arg)):
            values, wanted = arg, False
        else:
            listing, values = False, ""
            yield arg
        for number in values.split(",") if listing and values else ():
            yield from ("--alpha", number)
    if wanted:
        yield "--alpha"  # the parser says what is missing


def _is_list(text: str) -> bool:
    """Whether a word is a number, or several with commas between."""
    numbers = (part.removesuffix("%") for part in text.split(","))
    return all(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", number, re.I) for number in numbers)

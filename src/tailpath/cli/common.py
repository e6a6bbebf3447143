"""What the commands share: the MODEL argument with its options, alpha, policies, files to write."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import click
from click.shell_completion import CompletionItem

import tailpath
from tailpath.cli.application import policy_files, print_message
from tailpath.domains.register import FORMATS, find_domain, schemes
from tailpath.errors import FormatError, OptionError, kind_of
from tailpath.formats.files import load_json, read_text, refuse_unwritable
from tailpath.formats.registry import options as reading_options
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import Flag, Option, confidence_note, percent_hint
from tailpath.pictures.progress import progress_line
from tailpath.registers import folder_of
from tailpath.risk.measure import parse_number_or_percent

Command = Callable[..., Any]
#: Commands that take no intervals.
WITHOUT_INTERVALS = ("show", "diff", "explain", "simulate")


# ---------------------------------------------------------------------- arguments and options


def alpha(text: str) -> float:
    """The type of an option that takes a number in (0, 1], or a percentage."""
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
    """The type of an option that takes a file to write: what prevents that is told before the work
    is done.
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


def picture_file(path: str) -> str:
    """The type of an option that takes a picture to write."""
    folder_of("matplotlib", "plot")
    return out_file(".png", ".pdf", ".svg")(path)


def refuse_same_file(output: str | None, source: str) -> None:
    """A result must not replace the model it was computed from."""
    exist = output is not None and os.path.exists(output) and os.path.exists(source)
    if exist and os.path.samefile(str(output), source):
        raise click.UsageError(f"{output} is the model itself; write the result to another file")


def reward_and_cost(text: str) -> tuple[float, float]:
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
    left, equals, right = (part.strip() for part in text.partition("="))
    if not (left and equals and right):
        raise click.BadParameter(f"{text!r} is not of the form N=V")
    return left, right


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number") from None


#: What an option takes whose word is this.
PAIRS: dict[str, Any] = {"R=C": reward_and_cost, "N=V": name_and_value}


def flag(option: Option, cls: type[click.Option] = click.Option) -> click.Option:
    """The flag of an option that somebody else has, who takes its default if the user says nothing:
    its value is None then.
    """
    names, settings = _declared(option if isinstance(option, Flag) else Flag(**vars(option)))
    if option.kind is not bool and option.default is not None:
        settings["help"] += f"  [default: {option.default}]"
    return cls(names, default=None, **settings)


def flags(*options: Flag) -> Callable[[Command], Command]:
    """Give a command the flags of some options; it is called with their values."""

    def with_flags(command: Command) -> Command:
        for option in reversed(options):
            names, settings = _declared(option)
            if option.default is not None:  # None would do for a value that is required
                settings |= {"default": option.default, "show_default": option.default != ""}
            command = click.option(*names, required=option.required, **settings)(command)
        return command

    return with_flags


def _declared(option: Flag) -> tuple[list[str], dict[str, Any]]:
    """What click is told about an option: its names, and all but its default."""
    names = option.flag.split() or [f"--{option.name.replace('_', '-')}"]
    settings: dict[str, Any] = {"help": option.help}
    if option.kind is bool:
        return [*names, option.name], {**settings, "is_flag": True}
    if option.word:
        settings["metavar"] = option.word
    settings |= {"type": _type(option), "multiple": option.several}
    return [*names, option.name], settings


def _type(option: Option) -> Any:
    if option.choices:
        return click.Choice(option.choices)
    if option.least is not None:
        return click.IntRange(min=option.least)
    if option.mass:
        return alpha
    return table_file if option.kind is dict else PAIRS.get(option.word, option.kind)


def table_file(path: str) -> dict[str, Any]:
    """The type of an option that takes a table from a file, in TOML or JSON."""
    text = read_text(path)
    try:
        found = tomllib.loads(text) if path.lower().endswith(".toml") else load_json(text, path)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path}: this must be a table, not {kind_of(found)}")
    return found


#: Flags that make a goal sure, or go with one that does.
ENDINGS = (
    Flag("give_up", str, None, "Let every state end the run at a price of C.", "C"),
    Flag(
        "given_arrival", bool, None, "Arrive as surely as possible, and count the runs that arrive."
    ),
    Flag("within", int, None, "End every run after N steps; late ones never arrive.", "N", least=1),
    Flag("otherwise", str, None, "With --within, late runs pay C instead.", "C"),
    Flag("gamma", discount, None, "Discount: costs at step t count G^t times.", "G"),
)


class ModelOption(click.Option):
    """An option of reading or ending a model, told apart from those of commands."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return None


class ModelCommand(click.Command):
    """A command about a model: it has the argument MODEL and its options, and is called with `ssp`,
    the model read, and `source`, its name as typed. A command with a parameter `gamma` gets the
    discount, unless it is part of the model, and None where there is none. A parameter called like
    an option of `read` is the command's own. The help tells the command's own options first, and
    those of reading models in short.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        taken = {param.name for param in self.params}
        self.shared = [
            flag(each, ModelOption)
            for each in (*reading_options(), *ENDINGS)
            if each.name not in taken
        ]
        model = click.Argument(["model"], shell_complete=complete_model)
        self.params = [model, *self.shared, *self.params]
        self.callback = with_model(self.callback, [each.name for each in self.shared])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        shared = {" ".join([*each.opts, each.metavar or ""]).strip(): each for each in self.shared}
        if ctx.info_name != "info":
            with formatter.section("How the MODEL is read and ended (see tailpath info --help)"):
                formatter.write_text("  ".join(shared))
        else:
            with formatter.section("How the MODEL is read and ended, the same for all commands"):
                formatter.write_dl([(short, each.help or "") for short, each in shared.items()])


def with_model(command: Any, shared: Sequence[str]) -> Command:
    """The command, called with the model that is read, and ended, as its shared options say."""
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
                f"{verb} needs known probabilities, and the model has intervals, which info, solve,"
                " evaluate, compare, page and convert take"
            )
        return command(ssp=ssp, source=model, **given)

    return called


def complete_model(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What the shell offers for a MODEL: the bundled problems of a scheme, or schemes and files."""
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


def given_policy(command: Command) -> Command:
    """Give a command the argument POLICY, for which the shell offers files."""

    def files(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
        return [CompletionItem(text, type="file")]

    return click.argument("policy", shell_complete=files)(command)


def _ended(ssp: SSP, endings: Mapping[str, Any]) -> SSP:
    """The limit of steps first, since the other ends look at what it leaves open."""
    if endings["within"] is not None:
        ssp = tailpath.within(
            ssp, endings["within"], endings["otherwise"], gamma=endings["gamma"] or 1
        )
    elif endings.get("gamma") is not None:
        raise click.UsageError(
            "a discount is exact here over a bounded number of steps: give --within N, too"
        )
    elif endings["otherwise"] is not None:
        raise click.UsageError("--otherwise is the price of being late, and goes with --within N")
    if endings["give_up"] is not None:
        ssp = tailpath.give_up(ssp, endings["give_up"])
    return tailpath.given_arrival(ssp) if endings["given_arrival"] else ssp


def read_model(model: str, endings: Mapping[str, Any], **options: Any) -> SSP:
    """Read a model, end it in the ways asked for, and repeat its notes on standard error."""
    reading: dict[str, Any] = {
        name: dict(value) if isinstance(value, tuple) and name != "goals" else value
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


#: Policies of the user beside others, and whether they may be those of another model.
POLICIES = Flag(
    "files",
    str,
    None,
    "Also this policy of yours, called like its file (repeatable).",
    "FILE",
    flag="--policy",
    several=True,
)
LOOSE = Flag(
    "loose", bool, False, "Take a policy made for another model with the same states and actions."
)


def policy_argument(policy: str, ssp: Any, loose: bool = False) -> tailpath.Policy:
    """Read a policy as the command line names it: a file, or a method that needs no alpha, such as
    `expected` for the least expected cost.
    """
    methods = tailpath.methods
    words = [word for word in methods.method_names() if not methods.find_method(word).risk]
    if policy in words:
        return methods.find_method(policy).make(ssp, None, {}).policy(1.0)
    if not os.path.splitext(policy)[1] and ":" not in policy:
        raise OptionError(
            f"{policy}: policies are saved as .json or .npz, by `tailpath solve --output`; the word"
            f" for one without a file is {' or '.join(words)}"
        )
    policy_files.append(policy)
    return tailpath.read_policy(policy, ssp, strict=not loose)


# ---------------------------------------------------------------------- several alphas


class ManyAlphas(ModelCommand):
    """A command whose `--alpha` may be followed by several numbers, or by some with commas between;
    it gets `alphas`, each once, smallest first.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        remaining = super().parse_args(ctx, list(_one_each(args)))
        ctx.params["alphas"] = tuple(sorted(set(ctx.params.get("alphas") or ())))
        return remaining


def several_alphas(default: Sequence[float] | None = None) -> Flag:
    """The option `--alpha` of such a command, which must be given if there is no default."""
    help_ = "Masses of the worst tail, in (0, 1], one or more."
    return Flag(
        "alphas",
        float,
        default,
        help_,
        "A...",
        mass=True,
        flag="--alpha",
        several=True,
        required=default is None,
    )


def _one_each(args: list[str]) -> Iterator[str]:
    """Repeat `--alpha` before each number of its list."""
    position = 0
    while position < len(args):
        arg, position = args[position], position + 1
        if arg != "--alpha" and not arg.startswith("--alpha="):
            yield arg
            continue
        values = (
            [arg.removeprefix("--alpha=")] if arg != "--alpha" else args[position : position + 1]
        )
        position += arg == "--alpha"
        while position < len(args) and _is_list(args[position]):
            values.append(args[position])
            position += 1
        if not values:
            yield arg  # the parser says what is missing
        for number in ",".join(values).split(",") if values else ():
            yield from ("--alpha", number)


def _is_list(text: str) -> bool:
    """Whether a word is a number, or several with commas between."""
    try:
        return all(float(part.removesuffix("%")) is not None for part in text.split(","))
    except ValueError:
        return False

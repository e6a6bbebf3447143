"""The one table of formats, by suffix and by scheme, and the options of `read`, declared once.

Each field of `Reading` is an option, with its flag of the command line. A row of the table names
the options that its format takes; any other is refused here, with the name of the format.

Readers and writers are named as `module:function` and imported when they are used, so that a model
in one format never loads the libraries of another. A domain is a format of its own:
`scheme:text` is read by what `tailpath.domains` has registered under the scheme.

Others add theirs as `registers.py` says, by `register(Format(...))` or by an entry point of the
group `tailpath.readers`: a `Format`, or only a function that reads, which takes its options as
keyword arguments, exactly those that its signature names. `abc = "package.module:thing"` serves
both `model.abc` and `abc:anything`. Our own table wins where both have the name.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tailpath.domains.register import ELSEWHERE, Domain, find_domain, schemes
from tailpath.domains.register import REGISTER as DOMAINS
from tailpath.errors import FormatError, OptionError, TailpathError
from tailpath.formats.files import located, read_text
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import Option, Progress, answering
from tailpath.registers import Register, loaded
from tailpath.texts import did_you_mean


def _option(default: Any, word: str, text: str, flag: str = "") -> Any:
    metadata = {
        "kind": float if word in ("C", "P") else str if word else bool,
        "default": None,
        "help": text,
        "word": word,
        "flag": flag,
        "several": default in (dict, ()),
    }
    made = {"default_factory": dict} if default is dict else {"default": default}
    return field(**made, metadata=metadata)


@dataclass(frozen=True)
class Reading:
    """The options as given; a field at its default was not given.

    `progress` is a callback, not an option of a format.
    """

    goal: str | None = _option(
        None,
        "LABEL",
        "Label or condition of the goals (PRISM, JANI); in Gymnasium best, all or a final reward.",
    )
    cost: str | None = _option(
        None, "NAME", "Reward structure, or column of a table, that holds the costs."
    )
    property: str | None = _option(
        None, "NAME", "Property of a PRISM or JANI model that names goal and reward."
    )
    step_cost: float | None = _option(None, "C", "Every outcome costs C, whatever its reward.")
    cost_of: Mapping[float, float] = _option(
        dict, "R=C", "An outcome with reward R costs C (repeatable)."
    )
    negate_reward: bool = _option(False, "", "Reverse the sign that rewards have in the format.")
    rewards: bool = _option(False, "", "Treat the numbers as rewards (cost = -reward).")
    constants: Mapping[str, Any] = _option(
        dict, "N=V", "Value V of the constant N (repeatable).", "--const"
    )
    start: str | int | tuple[Any, ...] | None = _option(
        None, "STATE", "State, label or condition where runs begin."
    )
    goals: Iterable[Any] = _option((), "STATES", "Goal states of a table (repeatable).")
    one_based: bool = _option(False, "", "States and actions of a table are counted from 1.")
    columns: Mapping[str, Any] = _option(
        dict, "N=V", "Column N of a table is named V, e.g. cost=minutes (repeatable).", "--column"
    )
    actions: str | Sequence[str] | None = _option(
        None,
        "NAMES",
        "Names for the actions of an environment, in order, separated by commas; or the word"
        ' "known".',
    )
    confidence: float | None = _option(
        None,
        "P",
        "For a table of counts, or a log of steps: the confidence that all intervals hold.",
    )
    progress: Progress | None = None

    def __post_init__(self) -> None:
        mappings = dict.fromkeys(("cost_of", "constants", "columns"), Mapping)
        for name, kind in {"goal": str, "property": str, **mappings}.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise OptionError(
                    f"{name} must be a {'string' if kind is str else 'mapping'}, not {value!r}"
                )

    def table_columns(self) -> dict[str, Any]:
        cost = tuple(self.cost) if isinstance(self.cost, list) else self.cost
        return {**({} if cost is None else {"cost": cost}), **self.columns}

    def given(self) -> dict[str, Any]:
        """The options that are not at their default, by name."""
        values = {option.name: getattr(self, option.name) for option in options()}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value is not False and value != {} and value != ()
        }


def options() -> list[Option]:
    """The options, in the order of the command line's help."""
    return [Option(each.name, **each.metadata) for each in fields(Reading) if each.metadata]


# ---------------------------------------------------------------------- formats

GROUP = "tailpath.readers"
Reader = Callable[..., Any]


@dataclass(frozen=True)
class Format:
    """A format: how it is recognised, what reads and writes it, and which options it takes.

    Parameters
    ----------
    title : str
        Its name in messages.
    reader : callable or str
        `reader(path)` gives the model; the function, or its "module:function". For a scheme it
        gets the part after the colon. With options, or if the format `reports`, it is called as
        `reader(path, reading)`, and `reading` has the options by name.
    writer : callable or str, optional
        `writer(ssp, path)`.
    suffixes : tuple of str
        Such as `(".abc",)`.
    scheme : str, optional
        `abc` for `abc:anything`.
    options : tuple of str
        The options of `tailpath.read` that apply; others are refused.
    reports : bool
        Whether the reader reports progress.
    intervals : bool
        Whether it can hold an `IntervalSSP`.
    chains : bool
        Whether it can hold a `CostChain`: the writer then gets `dtmc=True` and a model with one
        choice in each state.
    implicit : callable or str, optional
        Called as the reader is, it gives a problem that is too large to be listed as functions,
        an `ImplicitSSP`.

    Raises
    ------
    OptionError
        If a suffix does not begin with a dot, or it or the scheme has capital letters.

    Examples
    --------
    >>> mine = tp.formats.Format("one of mine", lambda path: ssp, suffixes=(".mine",))
    >>> mine.suffixes, mine.options, mine.writer
    (('.mine',), (), '')
    """

    title: str
    reader: str | Reader
    writer: str | Reader = ""
    suffixes: tuple[str, ...] = ()
    scheme: str = ""
    options: tuple[str, ...] = ()
    reports: bool = False
    intervals: bool = False
    chains: bool = False
    implicit: str | Reader = ""

    def __post_init__(self) -> None:
        for suffix in self.suffixes:
            if not suffix.startswith("."):
                raise OptionError(f"a suffix must begin with a dot, such as '.abc', not {suffix!r}")
        for name in (*self.suffixes, self.scheme):
            if name != name.lower():
                raise OptionError(f"{name!r} must be in lower case, such as {name.lower()!r}")

    def read(self, source: Any, reading: Reading) -> SSP:
        """Read a model.

        Parameters
        ----------
        source : str
            A path, or the text after the scheme.
        reading : Reading
            The options.

        Returns
        -------
        SSP or IntervalSSP
            The model.

        Raises
        ------
        OptionError
            If the format does not take an option.

        Examples
        --------
        >>> mine = tp.formats.Format("one of mine", lambda path: ssp)
        >>> mine.read("any.mine", tp.formats.Reading()) == ssp
        True
        """
        ssp: SSP = called(self, self.reader, source, reading)
        return ssp

    def write(self, ssp: Any, path: str) -> None:
        """Write a model.

        Parameters
        ----------
        ssp : SSP, IntervalSSP or CostChain
            The model, or the chain of a model and a policy.
        path : str
            Where to.

        Raises
        ------
        OptionError
            If the format can only be read, or cannot hold intervals or a chain.

        Examples
        --------
        >>> shown = tp.formats.Format("names", tp.read, lambda ssp, path: print(*ssp.states, path))
        >>> shown.write(ssp, "a.mine")
        home work a.mine
        """
        if not self.writer:
            raise OptionError(
                f"{path}: {self.title} can be read but not written; write one of"
                f" {', '.join(written_suffixes())}"
            )
        if isinstance(ssp, IntervalSSP) and not self.intervals:
            raise OptionError(
                f"{path}: {self.title} cannot hold intervals; write one of {_listed('intervals')}"
            )
        more: dict[str, Any] = {}
        if not isinstance(ssp, (SSP, IntervalSSP)):
            if not self.chains:
                raise OptionError(
                    f"{path}: {self.title} cannot hold a chain; write one of {_listed('chains')}"
                )
            ssp, more = _load(f"{__package__}.chains:chain_model")(ssp), {"dtmc": True}
        _load(self.writer)(ssp, path, **more)


def called(entry: Format, address: str | Reader, source: Any, reading: Reading) -> Any:
    """What a function of a format makes of a source; options that it does not take are refused."""
    for name in reading.given():
        if name not in entry.options:
            raise OptionError(
                f"the option {name} does not apply to {entry.title}, which takes"
                f" {', '.join(entry.options) or 'no options'}"
            )
    function = _load(address)
    return function(source, reading) if entry.options or entry.reports else function(source)


def _read_domain(domain: Domain, text: str) -> Any:
    """The text after the scheme names a problem, or the file that describes one."""
    ssp = domain.build(text)
    if (
        ssp is None
        and domain.from_text is not None
        and (os.path.exists(text) or "." in text or os.sep in text)
    ):
        # It looks like a path: if there is no such file, the error of `read_text` is the right one.
        try:
            ssp = domain.from_text(read_text(text))
        except TailpathError as error:
            raise FormatError(located(error, text)) from None
    return _known(ssp, domain, text)


def _known(found: Any, domain: Domain, text: str) -> Any:
    if found is None:
        raise OptionError(f"{domain.scheme}:{text}: {domain.expects}")
    return found


def _bundled(title: str, module: str, *suffixes: str, writes: bool = False, **more: Any) -> Format:
    """A format that a module of this folder reads, and perhaps writes."""
    address = f"{__package__}.{module}"
    writer = f"{address}:write" if writes else ""
    return Format(title, f"{address}:read", writer, suffixes, **more)


#: The options of formats with rewards, of those with labels and reward structures, and of tables.
REWARDS = ("step_cost", "cost_of", "negate_reward", "rewards")
LABELLED = ("goal", "cost", "start", *REWARDS)
TABLE = (*REWARDS, "start", "goals", "one_based", "cost", "columns", "confidence")
_PROGRAM = (*LABELLED, "constants", "property")
_ALL: dict[str, Any] = {"writes": True, "intervals": True}
_TEXT: dict[str, Any] = {**_ALL, "reports": True}
_CHECKERS: dict[str, Any] = {"chains": True, "options": LABELLED}
FORMATS = (
    _bundled("tailpath JSON", "json_files", ".json", **_TEXT),
    _bundled("tailpath npz", "archives", ".npz", **_ALL),
    _bundled("Storm DRN", "drn", ".drn", ".drn.gz", ".drn.xz", **_CHECKERS, **_TEXT),
    _bundled("PRISM explicit", "prism_explicit", ".tra", ".tra.gz", **_CHECKERS, **_TEXT),
    _bundled("UMB", "umb", ".umb", **_CHECKERS, **_ALL),
    _bundled("long table", "long_table", ".csv", options=TABLE, **_TEXT),
    _bundled("Parquet table", "long_table", ".parquet", options=TABLE, reports=True),
    _bundled("PRISM language", "storm_language", ".nm", ".pm", ".prism", options=_PROGRAM),
    _bundled("JANI", "storm_language", ".jani", options=_PROGRAM),
    _bundled(
        "Gymnasium",
        "gym",
        scheme="gym",
        options=(*REWARDS, "goal", "start", "constants", "actions"),
    ),
)


def _suffixes() -> dict[str, Format]:
    """The formats of the table and those registered, by suffix."""
    every = dict.fromkeys([*FORMATS, *REGISTER.added.values()])
    return {suffix: entry for entry in every for suffix in entry.suffixes}


def _listed(able: str) -> str:
    """The suffixes of our own formats that can hold something."""
    return ", ".join(each for entry in FORMATS if getattr(entry, able) for each in entry.suffixes)


def written_suffixes() -> list[str]:
    return [suffix for suffix, entry in _suffixes().items() if entry.writer]


def by_scheme(scheme: str) -> Format | None:
    for entry in FORMATS:
        if entry.scheme and entry.scheme == scheme:
            return entry
    domain = find_domain(scheme)
    if domain is None:
        found = _third_party(f"{scheme}:")
        if found is None and scheme in ELSEWHERE:
            raise OptionError(
                f"{scheme}: comes with the package {ELSEWHERE[scheme]}, which is not installed:"
                " pip install ./cases in a checkout of tailpath"
            )
        return found
    functions = domain.implicit
    return Format(
        f"{scheme}:",
        lambda text: _read_domain(domain, text),
        implicit="" if functions is None else lambda text: _known(functions(text), domain, text),
    )


def by_suffix(path: str) -> Format:
    """The format of a path; the longest suffix decides."""
    name, known = path.lower(), _suffixes()
    matches = [suffix for suffix in known if name.endswith(suffix)]
    if matches:
        return known[max(matches, key=len)]
    found = _third_party("." + name.rpartition(".")[2]) if "." in name else None
    if found is not None:
        return found
    of_formats = (entry.scheme for entry in FORMATS if entry.scheme)
    heads = [f"{scheme}:" for scheme in (*of_formats, *schemes())]
    parts = (path.partition(":")[0] + ":", "." + name.rpartition(".")[2])
    word = next((part for part in parts if len(part) < len(path) or part in heads), "")
    every = f"; known suffixes are {', '.join(known)}, known schemes are {', '.join(heads)}"
    raise OptionError(f"{path}: unknown format{did_you_mean(word, [*heads, *known]) or every}")


def _format(thing: Any) -> Format | None:
    """A format, or one of a function that reads, whose signature says which options it takes."""
    if isinstance(thing, Format) or not callable(thing):
        return thing if isinstance(thing, Format) else None
    parameters = inspect.signature(thing).parameters.values()
    names = tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        names = tuple(each.name for each in fields(Reading))

    def read(source: Any, reading: Reading) -> Any:
        return thing(source, **reading.given())

    return Format("", read, options=names, reports=True)


#: The formats of others, by suffix (`.abc`) and by scheme (`abc:`).
REGISTER = Register(
    "format",
    "tailpath.formats.Format or a function",
    GROUP,
    {},
    _format,
    taken=[name for entry in FORMATS for name in (*entry.suffixes, f"{entry.scheme}:")],
)


@answering
def register(added: Format) -> None:
    """Make a format known to `read`, to `write` and to every command of this process.

    Registered again, it replaces the one before.

    Parameters
    ----------
    added : Format
        The format; it is found by its suffixes and its scheme.

    Raises
    ------
    OptionError
        If a suffix is one of the package's own, the scheme one of its or of a domain's, or it has
        neither.

    Examples
    --------
    >>> tp.formats.register(tp.formats.Format("one of mine", lambda path: ssp, suffixes=(".mine",)))
    >>> tp.read("any.mine") == ssp
    True
    """
    names = [*added.suffixes, *(f"{scheme}:" for scheme in filter(None, [added.scheme]))]
    if not names:
        raise OptionError(f"the format {added.title!r} has neither a suffix nor a scheme")
    if added.scheme and find_domain(added.scheme) is not None:
        raise OptionError(f"a domain named {added.scheme!r} is already registered")
    REGISTER.add(added, *names)
    DOMAINS.taken.update(filter(None, [added.scheme]))


def _third_party(name: str) -> Format | None:
    found = REGISTER.find(name)
    return found if found is None or found.title else replace(found, title=name.strip(".:"))


def _load(address: str | Reader) -> Reader:
    function: Reader = loaded(address, "format", GROUP) if isinstance(address, str) else address
    return function

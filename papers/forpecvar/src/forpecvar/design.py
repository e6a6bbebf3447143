"""What a study asks for: a small TOML file, read into a `Design`, which becomes a list of tasks:
problems x methods x variants x numbers of atoms x values of alpha0, every atom an initial alpha.
Methods that take no atoms are run at the same points, for comparison.

A method with an option `inner` solves many millions of linear programs, to convergence (`lp`); or
the closed form of the same inner problem gives its values (`greedy`), and no times.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any

from forpecvar.store import StudyTask
from tailpath import SSP, log_atoms, read
from tailpath.errors import OptionError
from tailpath.methods import Method, find_method

LP_MODES = ("full", "none")
#: The name of a planner's default among its variants, and the domain of models that belong to none.
IMPROVED, OWN = "improved", "own"
#: What tasks call the least CVaR over all policies, and Monte Carlo in place of a planner.
OPTIMUM, SIMULATION = "optimum", "simulation"
#: Variants for contrast, and which variant each differs from: nobody ran them, so no claim is about
#: them. Rows of tables and one figure show them.
CONTRAST = {"printed": "published"}


@dataclass(frozen=True)
class StudyProblem:
    """A model under a name `domain/problem`; docs/study.md explains the fields."""

    name: str
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    finer: tuple[int, ...] = ()
    simulate: bool = False

    @property
    def key(self) -> tuple[str, str]:
        domain, _, rest = self.name.rpartition("/")
        return domain or OWN, rest

    def read(self) -> SSP:
        return read(self.model, **self.options)


@dataclass(frozen=True)
class Design:
    """A study; docs/study.md explains the fields."""

    problems: tuple[StudyProblem, ...]
    title: str = "A study"
    methods: tuple[str, ...] = ("quantile", OPTIMUM)
    variants: tuple[str, ...] = (IMPROVED,)
    atoms: tuple[int, ...] = (25,)
    alpha0: tuple[float, ...] = (1e-3,)
    gamma: float = 1.0
    tolerance: float = 1e-3
    repetitions: int = 5
    imports: tuple[str, ...] = ()
    simulated: str = ""

    def __post_init__(self) -> None:
        import_all(self.imports)
        for name in self.methods:
            find_method(name)
        for n in self.atoms:
            for low in self.alpha0:
                log_atoms(low, n)
        if not 0 < self.gamma <= 1:
            raise OptionError(f"gamma must lie in (0, 1], not {self.gamma!r}")
        known = {
            IMPROVED,
            *(variant for name in self.methods for variant in find_method(name).variants),
        }
        for variant in self.variants:
            if variant not in known:
                raise OptionError(
                    f"no method of the study has a variant {variant!r}; there are"
                    f" {', '.join(sorted(known))}"
                )
        names = [problem.key for problem in self.problems]
        for key in names:
            if names.count(key) > 1:
                raise OptionError(f"the study has two problems {'/'.join(key)}")


def import_all(modules: Collection[str]) -> None:
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise OptionError(
                f"the module {module!r} of the study's design cannot be imported: {error}"
            ) from None


# ---------------------------------------------------------------------- the file


def read_design(path: str | os.PathLike[str]) -> Design:
    """Read a design; paths of models in it are relative to it."""
    path_name = pathlib.Path(path)
    try:
        content: dict[str, Any] = tomllib.loads(path_name.read_text(encoding="utf-8"))
    except ValueError as error:  # of the text, or of its letters
        raise OptionError(f"{path_name}: {error}") from None
    content["imports"] = content.pop("import", [])
    problems = content.pop("problems", [])
    if not isinstance(problems, list) or not problems:
        raise OptionError(
            f"{path_name}: a study needs problems, each a table [[problems]] with a name and a"
            " model"
        )
    made = [
        _made(StudyProblem, entry, f"{path_name}: problem {k}")
        for k, entry in enumerate(problems, 1)
    ]
    folder = path_name.parent
    # Paths are seen from the folder of the design; strings such as `river:30x10` stay.
    content["problems"] = [
        replace(problem, model=str(folder / problem.model))
        if (folder / problem.model).exists()
        else problem
        for problem in made
    ]
    design: Design = _made(Design, content, str(path_name))
    return design


#: What a value must be, by the type of its field; a whole number is above 0.
KINDS: dict[str, Any] = {
    "str": str,
    "bool": bool,
    "int": int,
    "float": (int, float),
    "Mapping[str, Any]": dict,
    "StudyProblem": StudyProblem,
}


def _is_of(kind: str, value: Any) -> bool:
    plain = isinstance(value, KINDS[kind]) and isinstance(value, bool) == (kind == "bool")
    return plain and (kind != "int" or value > 0)


def _made(kind: Any, entry: Any, table: str) -> Any:
    """A record from a table of the file, with every key and value looked at."""
    if not isinstance(entry, dict):
        raise OptionError(f"{table} is not a table")
    known = {known.name: str(known.type) for known in fields(kind)}
    made = {}
    for key, value in entry.items():
        if key not in known:
            raise OptionError(f"{table}: unknown key {key!r}; there are {', '.join(known)}")
        of = known[key].removeprefix("tuple[").removesuffix(", ...]")
        several = of != known[key]
        values = value if several else [value]
        if not isinstance(values, (list, tuple)) or not all(_is_of(of, each) for each in values):
            raise OptionError(
                f"{table}: {key} = {value!r} is not {'a list of' if several else 'of type'} {of}"
            )
        made[key] = tuple(value) if several else value
    for needed in ("name", "model") if kind is StudyProblem else ():
        if needed not in entry:
            raise OptionError(f"{table} has no {needed}")
    return kind(**made)


# ---------------------------------------------------------------------- restrictions


def restricted(
    design: Design,
    *,
    only: Collection[str] = (),
    models: Collection[str] = (),
    atoms: Collection[int] = (),
    alpha0: Collection[float] = (),
    methods: Collection[str] = (),
    variants: Collection[str] = (),
    gamma: float | None = None,
) -> Design:
    """The design with other problems, atoms, alpha0, methods, variants or discount. `only` names
    problems or domains of the design, or a problem of a domain that the design does not have
    (`river/10x4`); `models` adds models.
    """
    problems = [] if models and not only else list(_problems(design, only))
    problems += [
        StudyProblem(
            pathlib.Path(model).stem if os.path.exists(model) else model.replace(":", "/"), model
        )
        for model in models
    ]
    if atoms:
        problems = [
            replace(problem, finer=tuple(n for n in problem.finer if n in atoms))
            for problem in problems
        ]
        finer = {n for problem in problems for n in problem.finer}
        atoms = tuple(n for n in atoms if n not in finer or n in design.atoms) or tuple(atoms)
    if methods and not variants:
        # Those of the design that nobody named are not asked of methods that have none.
        known = {variant for name in methods for variant in find_method(name).variants}
        variants = [variant for variant in design.variants if variant in (IMPROVED, *known)]
        variants = variants or [IMPROVED]
    given = {"atoms": atoms, "alpha0": alpha0, "methods": methods, "variants": variants}
    changes: dict[str, Any] = {name: tuple(value) for name, value in given.items() if value}
    if gamma is not None:
        changes["gamma"] = gamma
    return replace(design, problems=tuple(problems), **changes)


def _problems(design: Design, only: Collection[str]) -> list[StudyProblem]:
    """The problems wanted, in the order of the design, and then those it does not have."""
    known = {problem.name: (problem.name, problem.key[0]) for problem in design.problems}
    found = [
        problem
        for problem in design.problems
        if not only or not {*known[problem.name]}.isdisjoint(only)
    ]
    for text in only:
        if not any(text in names for names in known.values()):
            scheme, slash, rest = text.partition("/")
            if not slash:
                raise OptionError(f"the study has no problem {text!r}; it has {', '.join(known)}")
            found.append(StudyProblem(text, f"{scheme}:{rest}"))
    return found


# ---------------------------------------------------------------------- tasks


def tasks(design: Design, *, lp: str = "full", simulation: bool = True) -> list[StudyTask]:
    if lp not in LP_MODES:
        raise OptionError(f"unknown choice of linear programs {lp!r}; use {', '.join(LP_MODES)}")
    simulated = simulation and simulated_method(design) in design.methods
    found = []
    for problem in design.problems:
        for n, low in product((*design.atoms, *problem.finer), design.alpha0):
            kinds = [
                kind for name in design.methods for kind in _kinds(design, problem, name, n, lp)
            ]
            if simulated and problem.simulate and n in design.atoms:
                kinds += [
                    (SIMULATION, each, "") for each in design.variants if each not in CONTRAST
                ]
            gamma, tolerance = design.gamma, design.tolerance
            part = "" if n in design.atoms else "finer"
            found += [StudyTask(*problem.key, *k, n, low, gamma, tolerance, part) for k in kinds]
    return sorted(found, key=effort, reverse=True)


def _kinds(
    design: Design, problem: StudyProblem, name: str, n: int, lp: str
) -> list[tuple[str, str, str]]:
    """The method with each of its variants, and how its linear programs are solved; nothing where
    it is not run at all.
    """
    method, inner = find_method(name), ""
    discounts = takes(method, "gamma") and method != find_method(OPTIMUM)
    if design.gamma < 1 and not discounts:
        return []
    if takes(method, "inner"):
        if n not in design.atoms:
            return []
        inner = "greedy" if lp == "none" else "lp"
    known = [each for each in design.variants if each == IMPROVED or each in method.variants]
    return [(name, variant, inner) for variant in (known if method.variants else [""])]


def simulated_method(design: Design) -> str:
    """The method whose policies are simulated; "" if there is none."""
    planners = (name for name in design.methods if takes(find_method(name), "atoms"))
    return design.simulated or next(planners, "")


def takes(method: Method, option: str) -> bool:
    return any(known.name == option for known in method.options)


def effort(task: StudyTask) -> float:
    """Roughly how long a task takes, in some unit, to start long ones first and to tell how much is
    left.
    """
    cells = 1.0
    for number in task.problem.split("x"):
        cells *= int(number) if number.isdigit() else 10
    weight = {"lp": 50.0, "greedy": 1.7}.get(task.inner, 1.0)
    return cells * task.atoms * weight * (1.0 if task.variant in ("", IMPROVED) else 2.0)

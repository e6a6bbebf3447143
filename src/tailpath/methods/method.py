"""What a planning method is: options, a plan and its account; and the register of methods.

What a policy delivers is not for the method to say: `evaluate` finds it, for all methods alike. The
command line makes a flag of each `Option`; `compare` and `study` hand a method those of their
settings that it has an option for. Others add methods as `registers.py` says. A study's workers are
processes of their own: there the module that calls `register` is named in the study's design
(`import = ["package.module"]`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tailpath.errors import OptionError
from tailpath.options import Option, Progress, answering
from tailpath.policies.policy import Policy
from tailpath.registers import Register, instance_of
from tailpath.risk.measure import Measure
from tailpath.texts import did_you_mean

#: Differences below this part of the numbers they come from are rounding, and shown as 0.
ROUNDING = 1e-9


GAMMA = Option("gamma", float, 1.0, "Discount: costs at step t count G^t times.", "G")
#: Each name with the address of its method; the first is the default of `solve`.
ADDRESSES = {
    "exact": "tailpath.methods.optimal:EXACT",
    "expected": "tailpath.methods.optimal:EXPECTED",
    "quantile": "tailpath.methods.published:QUANTILE",
    "interpolation": "tailpath.methods.published:INTERPOLATION",
    "nested": "tailpath.methods.published:NESTED",
}
#: Names in tables and papers that work, too, in upper or lower case.
ALSO = {"optimum": "exact", "cvarviq": "quantile", "cvarvili": "interpolation"}
#: Names that are not methods, and what to use instead.
INSTEAD = {"forpecvar": "ForPECVaR evaluates policies: tp.evaluate, or tailpath evaluate"}


def no_prediction(alpha: float) -> None:
    return None


@dataclass(frozen=True, eq=False)
class Plan:
    """What a method found.

    Parameters
    ----------
    policy : callable
        `policy(alpha)` may take time: a method that plans for one alpha at a time does it there.
    predict : callable
        `predict(alpha)` is the CVaR that the method predicts, or None.
    bounds : callable, optional
        `bounds(alpha)` encloses the optimum, proved.
    note : str
        A line for `compare`.
    facts : mapping
        Figures for programs, in the order in which they are shown.
    rows : mapping
        The same for people; "seconds" and "time" are filled in by the caller.
    gamma : float
        The discount of the costs that were planned for and have to be evaluated with.
    solution : object
        What the solver returned.
    model : SSP, optional
        The model that the policies are for, where that is not the one given.

    Examples
    --------
    >>> plan = tp.methods.Plan(lambda alpha: tp.policy(ssp, {"home": "road"}), lambda alpha: 24)
    >>> plan.policy(0.1).action("home"), plan.predict(0.1)
    ('road', 24)
    """

    policy: Callable[[float], Policy]
    predict: Callable[[float], float | None] = no_prediction
    bounds: Callable[[float], tuple[float, float]] | None = None
    note: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)
    gamma: float = 1.0
    solution: Any = None
    model: Any = None


#: The report of `solve` on a plan: a record for programs, and rows for people.
Account = tuple[Mapping[str, Any], Mapping[str, str]]


def bounds_row(bounds: Sequence[float], delta: str | None = None) -> dict[str, str]:
    """The row of the proved bounds on the optimum; costs were rounded to multiples of `delta`."""
    low, high = bounds
    if delta is None:
        return {"verified bounds": f"{low:.15g} to {high:.15g}"}
    return {"optimum between": f"{low:.10g} and {high:.10g}, with costs rounded to {delta}"}


def predicted_and_deployed(plan: Plan, alpha: Any, costs: Any, seconds: float) -> Account:
    """The account of most methods: what was predicted, and what the policy exactly delivers."""
    predicted, deployed = plan.predict(alpha), costs.cvar(alpha)
    gap = None if predicted is None else deployed - predicted
    record = {
        "alpha": alpha,
        "predicted": predicted,
        "deployed": deployed,
        "gap": gap,
        "deployed_bounds": list(costs.bounds(alpha)),
        "var": costs.var(alpha),
        "mean": costs.mean,
        **plan.facts,
        "seconds": seconds,
    }
    rows = {
        "alpha": f"{alpha:.6g}",
        "CVaR predicted by the planner": None if predicted is None else f"{predicted:.10g}",
        "CVaR of its policy, exact": f"{deployed:.10g}",
        "gap": None if gap is None else f"{without_rounding(gap, deployed):.6g}",
        "VaR of its policy": f"{costs.var(alpha):.10g}",
        "expected cost of its policy": f"{costs.mean:.10g}",
        **plan.rows,
        "time": f"{seconds:.3g} s",
    }
    return record, {what: value for what, value in rows.items() if value is not None}


def without_rounding(difference: float, scale: float) -> float:
    """A difference for people: anything below the ninth digit is rounding."""
    shown = math.isinf(difference) or abs(difference) > ROUNDING * abs(scale)
    return difference if shown else 0.0


def ignore(steps: int, reached: float, /) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True)
class Method:
    """One planning method.

    Parameters
    ----------
    name : str
        What users type.
    title : str
        The name in the literature.
    summary : str
        A line of help.
    plan : callable
        `plan(ssp, alpha, *, progress, **options)` returns a `Plan` for every tail mass from `alpha`
        up.
    options : tuple of Option
        The keywords of `plan`.
    shown : str
        Its name in tables, if it is another.
    risk : bool
        Whether it takes the mass of the worst tail into account at all.
    risk_neutral : bool
        Whether it starts from the risk-neutral optimum, which is found once per model: `compare`
        counts its time with every method that needs it.
    doing : str
        A line of progress, with `{steps}` and `{reached}` in it.
    variants : mapping
        Settings with a name, beside the defaults: `published` for values from zero.
    account : callable
        `account(plan, alpha, costs, seconds)` reports the result: a record for programs, and rows
        for people. `alpha` is None where none was asked for, and `costs`, those
        of the policy, are None then, or where its evaluation was given up.
    objective : callable, optional
        `objective(alpha)` is the measure whose least value it finds, for methods that find one; a
        model with intervals is solved for it.

    Examples
    --------
    >>> road = tp.policy(ssp, {"home": "road"})
    >>> method = tp.methods.Method("road", "The road", "Always by road.",
    ...                            lambda ssp, alpha, progress: tp.methods.Plan(lambda a: road))
    >>> method.plan(ssp, 0.1, progress=None).policy(0.1).action("home")
    'road'
    """

    name: str
    title: str
    summary: str
    plan: Callable[..., Plan]
    options: tuple[Option, ...] = ()
    shown: str = ""
    risk: bool = True
    risk_neutral: bool = True
    doing: str = "step {steps}, {reached:.6g}"
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    account: Callable[[Plan, Any, Any, float], Account] = predicted_and_deployed
    objective: Callable[[float], Measure] | None = None

    @property
    def label(self) -> str:
        """What tables call it."""
        return self.shown or self.name

    def make(
        self,
        ssp: Any,
        alpha: float | None,
        settings: Mapping[str, Any],
        progress: Progress = ignore,
        variant: str = "",
    ) -> Plan:
        """Plan with those of some settings that are options of this method and have a value.

        Parameters
        ----------
        ssp : SSP
            The model.
        alpha : float or None
            The least mass of the worst tail to plan for.
        settings : mapping
            Values by the name of an option; the others are the variant's or the defaults.
        progress : callable
            Called now and then.
        variant : str
            The name of a variant, if not the defaults.

        Returns
        -------
        Plan
            The plan.

        Raises
        ------
        OptionError
            If the method has no such variant.

        Examples
        --------
        >>> plan = tp.methods.find_method("exact").make(ssp, 0.1, {"lexicographic": True})
        >>> tp.evaluate(ssp, plan.policy(0.1), 0.1).mean
        30.0
        """
        if variant and variant not in self.variants:
            there = f"it has {', '.join(self.variants)}" if self.variants else "it has none"
            raise OptionError(f"the method {self.name} has no variant {variant!r}; {there}")
        known = {option.name for option in self.options}
        given = {
            name: value for name, value in settings.items() if name in known and value is not None
        }
        given = {**self.variants.get(variant, {}), **given}
        return self.plan(ssp, alpha, progress=progress, **given)


REGISTER = Register(
    "method",
    "tailpath.methods.Method",
    "tailpath.methods",
    ADDRESSES,
    instance_of(Method),
    taken=ALSO,
)


@answering
def register(method: Method) -> None:
    """Make a method known to every command of this process.

    Registered again, it replaces the one before.

    Parameters
    ----------
    method : Method
        The method.

    Raises
    ------
    OptionError
        If its name is one of the package's own.

    Examples
    --------
    >>> first = lambda ssp, alpha, progress: tp.methods.Plan(lambda a: tp.policy(ssp, [0, -1]))
    >>> tp.methods.register(tp.methods.Method("road", "The road", "Always by road.", first))
    >>> tp.compare(ssp, alphas=[0.1], methods=["road"])["road", 0.1].deployed
    60.0
    """
    REGISTER.add(method, method.name)


def method_names() -> list[str]:
    """The names of all methods.

    Returns
    -------
    list of str
        Those of the package, of installed packages, and those that were registered.

    Examples
    --------
    >>> tp.methods.method_names()[:3]
    ['exact', 'expected', 'quantile']
    """
    return REGISTER.names()


def all_methods() -> Iterator[Method]:
    """The methods that can be loaded; another says why it cannot when it is asked for."""
    for name in method_names():
        with suppress(OptionError):
            yield find_method(name)


def find_method(name: str) -> Method:
    """The method of a name.

    Parameters
    ----------
    name : str
        What users type.

    Returns
    -------
    Method
        The method.

    Raises
    ------
    OptionError
        If there is none.

    Examples
    --------
    >>> tp.methods.find_method("quantile").title, tp.methods.find_method("CVaRVILI").name
    ('CVaRVIQ', 'interpolation')
    """
    lower = str(name).lower()
    method = REGISTER.find(ALSO.get(lower, str(name)))
    if method is None and lower in INSTEAD:
        raise OptionError(f"there is no method {name!r}; {INSTEAD[lower]}")
    if method is None:
        every = f"; there are {', '.join(method_names())}"
        raise OptionError(
            f"there is no method {name!r}{did_you_mean(name, [*method_names(), *ALSO]) or every}"
        )
    return method

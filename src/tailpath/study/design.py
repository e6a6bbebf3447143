"""What the paper's section 5 asks for, as a list of tasks.

2 domains x 3 problems x |Y| in {7, 13, 25} x alpha0 in {1e-3, 1e-2, 1e-1}, every atom an initial alpha: 810 points for each of

    quantile        CVaRVIQ
    interpolation   CVaRVILI
    optimum         the least CVaR over all policies, which the paper could not have

and 18 Monte Carlo comparisons, `simulation`, on the largest problem of each domain. One claim of the paper (River, "considering more atoms") needs a
finer grid than it shows: 49 atoms on the largest problem of River, `FINE`; these points are no part of the 810.

CVaRVILI solves many millions of linear programs. How its values and times are found is the `inner` of its tasks:

    lp        by linear programs, to convergence
    sampled   values by the closed form of the same inner problem; the time of the linear programs is measured on whole sweeps and scaled by
              the number of sweeps: an estimate
    greedy    values by the closed form, no linear programs
"""

from __future__ import annotations

from collections.abc import Collection

from tailpath import domains
from tailpath.errors import OptionError
from tailpath.model.ssp import SSP
from tailpath.study.store import Task

#: The problems of each domain by number of cells, smallest first.
PROBLEMS = {
    "gridworld": {"5x5": 25, "8x9": 72, "14x16": 224},
    "river": {"10x3": 30, "16x6": 96, "30x10": 300},
}
ATOMS = (7, 13, 25)
FINE_ATOMS = 49
FINE = ("river", "30x10")
ALPHA0 = (1e-3, 1e-2, 1e-1)
REPETITIONS = 5
#: Where linear programs run to convergence by default: these problems, with the fewest atoms.
FULL_LP = {("gridworld", "5x5"), ("gridworld", "8x9"), ("river", "10x3"), ("river", "16x6")}
LP_MODES = ("default", "full", "none")


def largest(domain: str) -> str:
    """The problem that the paper's figures show."""
    return max(PROBLEMS[domain], key=PROBLEMS[domain].__getitem__)


def build(domain: str, problem: str) -> SSP:
    """The model of a problem."""
    if domain == "gridworld":
        return domains.gridworld(problem)
    rows, columns = problem.split("x")
    return domains.river(rows=int(rows), columns=int(columns))


def tasks(
    *,
    only: Collection[str] = (),
    atoms: Collection[int] = (),
    alpha0: Collection[float] = (),
    lp: str = "default",
    simulation: bool = True,
) -> list[Task]:
    """The tasks of a study, the longest first, restricted to problems `only` ("gridworld/5x5" or "river"), numbers of atoms and alpha0."""
    if lp not in LP_MODES:
        raise OptionError(f"unknown choice of linear programs {lp!r}; use {', '.join(LP_MODES)}")
    for given, known, what in ((atoms, (*ATOMS, FINE_ATOMS), "atoms"), (alpha0, ALPHA0, "alpha0")):
        for value in given:
            if value not in known:
                raise OptionError(f"the study has no {what} {value:g}; it has {', '.join(f'{k:g}' for k in known)}")
    found = []
    for domain, problem in _problems(only):
        is_largest = problem == largest(domain)
        for n in (*ATOMS, *([FINE_ATOMS] if (domain, problem) == FINE else ())):
            for low in ALPHA0:
                if (atoms and n not in atoms) or (alpha0 and low not in alpha0):
                    continue
                found += [Task(domain, problem, method, "", n, low) for method in ("quantile", "optimum")]
                if n == FINE_ATOMS:
                    continue
                found.append(Task(domain, problem, "interpolation", _inner(domain, problem, n, lp), n, low))
                if is_largest and simulation:
                    found.append(Task(domain, problem, "simulation", "", n, low))
    return sorted(found, key=effort, reverse=True)


def effort(task: Task) -> float:
    """Roughly the seconds that a task takes, to start long ones first and to tell how much is left."""
    size = PROBLEMS[task.domain][task.problem] * task.atoms
    if task.inner == "lp":
        return 0.015 * size
    return {"sampled": 0.0015, "greedy": 0.0005}.get(task.inner, 0.0003) * size


def _inner(domain: str, problem: str, atoms: int, lp: str) -> str:
    if lp == "none":
        return "greedy"
    return "lp" if lp == "full" or ((domain, problem) in FULL_LP and atoms == min(ATOMS)) else "sampled"


def _problems(only: Collection[str]) -> list[tuple[str, str]]:
    everything = [(domain, problem) for domain, problems in PROBLEMS.items() for problem in problems]
    wanted = []
    for text in only:
        matching = [(domain, problem) for domain, problem in everything if text in (domain, f"{domain}/{problem}")]
        if not matching:
            raise OptionError(f"the study has no problem {text!r}; it has {', '.join(f'{d}/{p}' for d, p in everything)}")
        wanted += matching
    return [pair for pair in everything if not only or pair in wanted]

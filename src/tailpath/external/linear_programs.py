"""The only module that calls the LP solver (HiGHS).

It solves the inner problem of the CVaR Bellman operator, for one choice at one confidence level y:
over segments j with slope s_j and mass m_j,

    maximise  sum_j s_j z_j     subject to     sum_j z_j = 1,     0 <= z_j <= m_j / y.

z_j is the share of segment j in the tail. In units of y and of the largest slope all numbers lie
near 1, so the solver's absolute tolerances are relative ones. The programs of one choice at several
levels go to the solver together, as blocks that share nothing: most of the time of a small program
is spent on getting into the solver and back. Models are cached, and only costs and bounds change,
so each run starts from the basis of the one before. A program that is not solved to optimality is
an error, never a number.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from tailpath.errors import OptionError, TailpathError
from tailpath.model.ssp import FloatArray

#: The tightest the solver takes, for feasibility and for reduced costs.
TIGHTEST = 1e-10


def _highs() -> Any:
    """The solver's package, loaded when it is first used; some platforms have none."""
    try:
        import highspy
    except ImportError as error:
        raise OptionError("linear programs need highspy: pip install highspy") from error
    return highspy


class TailPrograms:
    """Solves tail programs one after the other. `solved` counts them and `seconds` is the time
    spent in the solver.
    """

    def __init__(self) -> None:
        self.solved = 0
        self.seconds = 0.0
        self._models: dict[tuple[int, int], Any] = {}
        self._slope: FloatArray = np.empty(0)
        self._mass: FloatArray = np.empty(0)
        self._shares: FloatArray = np.empty((0, 0))

    def load(self, slope: FloatArray, mass: FloatArray) -> None:
        self._slope, self._mass = slope, mass

    def solve(self, y: float) -> float:
        """The best value of the segments taken up, for a tail of mass y."""
        return float(self.solve_all(np.array([y]))[0])

    def solve_all(self, levels: FloatArray) -> FloatArray:
        """The best values for tails of these masses: one program each, in one run of the solver."""
        highspy = _highs()
        begin = perf_counter()
        size, count = len(self._slope), len(levels)
        model = self._model(size, count)
        columns = np.arange(size * count, dtype=np.int32)
        upper = np.minimum(self._mass / levels[:, None], 1.0).reshape(-1)
        self._check(
            model.changeColsCost(len(columns), columns, np.tile(_scaled(self._slope), count)),
            "change the objective",
        )
        self._check(
            model.changeColsBounds(len(columns), columns, np.zeros(len(columns)), upper),
            "change the bounds",
        )
        if model.run() != highspy.HighsStatus.kOk:
            # From the basis of the program before, the simplex method may fail among ties; from
            # scratch it does not.
            model.clearSolver()
            self._check(model.run(), "run")
        status = model.getModelStatus()
        where = f"on {size} segments at y = {', '.join(f'{y:g}' for y in levels)}"
        if status != highspy.HighsModelStatus.kOptimal:
            raise TailpathError(
                f"the LP solver ended with status {model.modelStatusToString(status)!r} {where}"
            )
        self._shares = np.asarray(model.getSolution().col_value, dtype=np.float64).reshape(
            count, size
        )
        best = self._shares @ self._slope
        if not np.isfinite(best).all():
            raise TailpathError(f"the LP solver found the values {best.tolist()} {where}")
        self.solved += count
        self.seconds += perf_counter() - begin
        return np.asarray(best)

    def shares(self) -> FloatArray:
        """The shares z of the last solve, one row a level, cleared of what the solver's tolerance
        lets slip below 0.
        """
        return np.maximum(self._shares, 0.0)

    def _model(self, size: int, count: int) -> Any:
        """The programs of so many levels over so many segments each."""
        if (size, count) not in self._models:
            self._models[size, count] = _solver(size, count)
            turned = self._models[size, count].changeObjectiveSense(_highs().ObjSense.kMaximize)
            self._check(turned, "turn the sense")
        return self._models[size, count]

    def _check(self, status: Any, what: str) -> None:
        if status != _highs().HighsStatus.kOk:
            raise TailpathError(
                f"the LP solver could not {what} of a program with {len(self._slope)} segments:"
                f" {status}"
            )


def _scaled(slope: FloatArray) -> FloatArray:
    """Slopes over the power of two next to the largest, which loses no digit."""
    return np.asarray(np.ldexp(slope, -np.frexp(np.abs(slope).max(initial=0.0))[1]))


def _solver(size: int, count: int) -> Any:
    """The simplex method, as accurate as it gets, for `count` sums of `size` columns in [0, 1] that
    are 1; costs and bounds come later.
    """
    highspy = _highs()
    program, columns = highspy.HighsLp(), size * count
    program.num_row_, program.num_col_ = count, columns
    program.col_cost_, program.col_lower_ = np.zeros(columns), np.zeros(columns)
    program.col_upper_ = np.ones(columns)
    program.row_lower_, program.row_upper_ = np.ones(count), np.ones(count)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.arange(0, columns + 1, size, dtype=np.int32)
    program.a_matrix_.index_ = np.arange(columns, dtype=np.int32)
    program.a_matrix_.value_ = np.ones(columns)
    model = highspy.Highs()
    options = {
        "output_flag": False,
        "solver": "simplex",
        "presolve": "off",
        "threads": 1,
        "primal_feasibility_tolerance": TIGHTEST,
        "dual_feasibility_tolerance": TIGHTEST,
    }
    taken = [model.setOptionValue(name, value) for name, value in options.items()]
    taken.append(model.passModel(program))
    if any(status != highspy.HighsStatus.kOk for status in taken):
        raise TailpathError(f"the LP solver refused a program with {columns} columns: {taken}")
    return model

"""The only door to the LP solver (HiGHS).

Two programs are asked for. The first is the inner problem of the CVaR Bellman operator, for one choice at one confidence level y: over segments
j with slope s_j and mass m_j,

    maximise  sum_j s_j z_j     subject to     sum_j z_j = 1,     0 <= z_j <= m_j / y.

z_j is the share of segment j in the tail. In units of y all numbers lie near 1 whatever y is, so the solver's absolute tolerances are relative
ones. Models are kept, one per number of segments, and only costs and bounds change: building one anew takes five times as long as solving it.
The second is the best mixture of some policies under limits (`best_mixture`), with few rows and columns. The status of every solve is checked;
whatever is not solved to optimality is an error, never a number.
"""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import TailpathError
from tailpath.model.ssp import FloatArray

#: The tightest the solver takes, for feasibility and for reduced costs.
TIGHTEST = 1e-10
#: The smallest matrix entry that the solver takes.
SMALLEST = 1e-12


def _highs() -> Any:
    """The solver's package, loaded when it is first used."""
    import highspy

    return highspy


class TailPrograms:
    """Solves tail programs one after the other. `solved` counts them and `seconds` is the time spent in the solver."""

    def __init__(self) -> None:
        self.solved = 0
        self.seconds = 0.0
        self._models: dict[int, Any] = {}
        self._size = 0
        self._mass: FloatArray = np.empty(0)

    def load(self, slope: FloatArray, mass: FloatArray) -> None:
        """Take up the segments of a choice: objective and, for the solves to come, the masses."""
        begin = perf_counter()
        self._size, self._mass = len(slope), mass
        if self._size not in self._models:
            self._models[self._size] = _new_model(self._size)
        self._check(self._model.changeColsCost(self._size, self._columns, slope), "change the objective")
        self.seconds += perf_counter() - begin

    def solve(self, y: float) -> float:
        """The best value of the segments taken up, for a tail of mass y."""
        highspy = _highs()
        begin = perf_counter()
        model = self._model
        upper = np.minimum(self._mass / y, 1.0)
        self._check(model.changeColsBounds(self._size, self._columns, np.zeros(self._size), upper), "change the bounds")
        if model.run() != _highs().HighsStatus.kOk:
            # From the basis of the program before, the simplex method may fail among ties; from scratch it does not.
            model.clearSolver()
            self._check(model.run(), "run")
        status = model.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise TailpathError(
                f"the LP solver ended with status {model.modelStatusToString(status)!r} on {self._size} segments at y = {y:g}"
            )
        best = float(model.getInfo().objective_function_value)
        if not math.isfinite(best):
            raise TailpathError(f"the LP solver found the value {best} on {self._size} segments at y = {y:g}")
        self.solved += 1
        self.seconds += perf_counter() - begin
        return best

    def shares(self) -> FloatArray:
        """The shares z of the last solve, cleared of what the solver's tolerance lets slip below 0."""
        return np.maximum(np.asarray(self._model.getSolution().col_value, dtype=np.float64), 0.0)

    @property
    def _model(self) -> Any:
        return self._models[self._size]

    @property
    def _columns(self) -> NDArray[np.int32]:
        return np.arange(self._size, dtype=np.int32)

    def _check(self, status: Any, what: str) -> None:
        if status != _highs().HighsStatus.kOk:
            raise TailpathError(f"the LP solver could not {what} of a program with {self._size} segments: {status}")


def _new_model(size: int) -> Any:
    """One row of ones that must sum to 1; costs and bounds come later."""
    highspy = _highs()
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = size, 1
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_, program.col_lower_, program.col_upper_ = np.zeros(size), np.zeros(size), np.ones(size)
    program.row_lower_ = program.row_upper_ = np.ones(1)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.array([0, size], dtype=np.int32)
    program.a_matrix_.index_ = np.arange(size, dtype=np.int32)
    program.a_matrix_.value_ = np.ones(size)
    return _configured(program)


def _configured(program: Any) -> Any:
    """A solver with a program: the simplex method, as accurate as it gets."""
    highspy = _highs()
    model = highspy.Highs()
    options = {
        "output_flag": False,
        "solver": "simplex",
        "presolve": "off",
        "threads": 1,
        "primal_feasibility_tolerance": TIGHTEST,
        "dual_feasibility_tolerance": TIGHTEST,
        "small_matrix_value": SMALLEST,
    }
    taken = [model.setOptionValue(name, value) for name, value in options.items()] + [model.passModel(program)]
    if any(status != highspy.HighsStatus.kOk for status in taken):
        raise TailpathError(f"the LP solver refused a program with {program.num_col_} columns: {taken}")
    return model


class Mixture(NamedTuple):
    """The best mixture of columns: `weights` per column, `multipliers` >= 0 per limit, and the value."""

    weights: FloatArray
    multipliers: FloatArray
    value: float


def best_mixture(cost: FloatArray, rows: FloatArray, limits: FloatArray) -> Mixture | None:
    """Minimise `cost @ x` over mixtures x (non-negative, summing to 1) with `rows @ x <= limits`; None if no mixture keeps the limits.

    The solution is a corner: no more columns have a weight than there are limits, and one more. Rows are scaled to size 1 for the
    solver's absolute tolerances.
    """
    highspy = _highs()
    count, n_limits = len(cost), len(limits)
    scale = np.maximum(np.abs(rows).max(axis=1, initial=0.0), np.abs(limits)) if n_limits else np.zeros(0)
    scale[scale == 0] = 1.0
    price = max(float(np.abs(cost).max()), 1e-300)
    matrix = np.vstack([np.ones((1, count)), rows / scale[:, None]])
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = count, n_limits + 1
    program.col_cost_, program.col_lower_, program.col_upper_ = cost / price, np.zeros(count), np.ones(count)
    program.row_lower_ = np.append(1.0, np.full(n_limits, -highspy.kHighsInf))
    program.row_upper_ = np.append(1.0, limits / scale)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    # The solver takes no entries below 1e-9 unless told, and none below 1e-12; those are far below its tolerances.
    row, column = np.nonzero(np.abs(matrix) > 2 * SMALLEST)
    program.a_matrix_.start_ = np.searchsorted(row, np.arange(n_limits + 2)).astype(np.int32)
    program.a_matrix_.index_ = column.astype(np.int32)
    program.a_matrix_.value_ = matrix[row, column]
    model = _configured(program)
    if model.run() != highspy.HighsStatus.kOk:
        raise TailpathError(f"the LP solver failed on {count} policies under {n_limits} limits")
    status = model.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    if status != highspy.HighsModelStatus.kOptimal:
        raise TailpathError(
            f"the LP solver ended with status {model.modelStatusToString(status)!r} on {count} policies under {n_limits} limits"
        )
    solution = model.getSolution()
    weights = np.maximum(np.asarray(solution.col_value, dtype=np.float64), 0.0)
    multipliers = np.maximum(-np.asarray(solution.row_dual, dtype=np.float64)[1:] * price / scale, 0.0)
    weights /= weights.sum()
    return Mixture(weights, multipliers, float(cost @ weights))

"""The LP solver: right answers from models used again and again, and no number without an optimal
status.
"""

import pathlib
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath
import tailpath as tp
from tailpath.errors import OptionError, TailpathError
from tailpath.external.linear_programs import TailPrograms

#: One for all examples, so that every model is met with the basis of an earlier program.
PROGRAMS = TailPrograms()


def by_sorting(slope, mass, y):
    left, total = y, 0.0
    for k in np.argsort(-slope):
        total += slope[k] * min(mass[k], left)
        left -= min(mass[k], left)
    return total / y


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.lists(st.floats(0, 1000), min_size=n, max_size=n),
            st.lists(st.floats(1e-6, 1), min_size=n, max_size=n),
        )
    ),
    st.lists(st.floats(1e-6, 1), min_size=1, max_size=4),
)
def test_solves_agree_with_sorting(segments, masses):
    slope, mass = (np.array(part) for part in segments)
    mass /= mass.sum()
    PROGRAMS.load(slope, mass)
    for y in masses:
        assert PROGRAMS.solve(y) == pytest.approx(by_sorting(slope, mass, y), rel=1e-9, abs=1e-6)
        shares = PROGRAMS.shares()
        assert shares.sum() == pytest.approx(1, abs=1e-9)
        assert np.all((shares >= 0) & (shares * y <= mass * (1 + 1e-9) + 1e-10 * y))


def test_levels_in_one_run_are_programs_of_their_own():
    programs = TailPrograms()
    programs.load(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]))
    assert programs.solve_all(np.array([0.125, 0.5, 1.0])).tolist() == pytest.approx(
        [3.0, 2.5, 1.75]
    )
    np.testing.assert_allclose(
        programs.shares(), [[1, 0, 0], [0.5, 0, 0.5], [0.25, 0.5, 0.25]], atol=1e-9
    )
    assert programs.solved == 3


def test_every_solve_is_counted_and_timed():
    programs = TailPrograms()
    programs.load(np.array([3.0, 1.0]), np.array([0.5, 0.5]))
    assert [programs.solve(y) for y in (0.25, 0.5, 1.0)] == pytest.approx([3.0, 3.0, 2.0])
    assert programs.solved == 3
    assert programs.seconds > 0


def test_a_program_without_a_solution_is_an_error():
    programs = TailPrograms()
    programs.load(np.array([3.0, 1.0]), np.array([0.25, 0.25]))
    with pytest.raises(TailpathError, match="'Infeasible' on 2 segments at y = 1"):
        programs.solve(1.0)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_solve_that_fails_from_an_old_basis_is_repeated_from_scratch(failures):
    """As HiGHS 1.15 does among ties on River 16x6 with 25 atoms: status unknown from the basis
    before, optimal without it.
    """
    from highspy import HighsStatus

    programs = TailPrograms()
    programs.load(np.array([3.0, 1.0]), np.array([0.5, 0.5]))
    programs.solve(0.5)
    model, cleared = programs._models[2, 1], []

    class Failing:
        def __getattr__(self, name):
            return getattr(model, name)

        def run(self):
            self.runs = getattr(self, "runs", 0) + 1
            return HighsStatus.kWarning if self.runs <= failures else model.run()

        def clearSolver(self):
            cleared.append(True)
            return model.clearSolver()

    programs._models[2, 1] = Failing()
    if failures == 1:
        assert programs.solve(1.0) == pytest.approx(2.0)
    else:
        with pytest.raises(TailpathError, match="could not run"):
            programs.solve(1.0)
    assert cleared == [True]


def test_a_slope_that_is_no_number_is_an_error():
    programs = TailPrograms()
    programs.load(np.array([np.nan, 1.0]), np.array([0.5, 0.5]))
    with pytest.raises(TailpathError, match="on 2 segments"):
        programs.solve(1.0)


def test_nothing_else_imports_the_solver():
    folder = pathlib.Path(tailpath.__file__).parent
    importing = [
        path.name
        for path in folder.rglob("*.py")
        if re.search(r"^\s*(import|from) highspy", path.read_text(), re.MULTILINE)
    ]
    assert importing == ["linear_programs.py"]


def test_a_missing_solver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    ssp = tp.SSP.from_outcomes([("s", "go", "g", 0.5, 1), ("s", "go", "g", 0.5, 2)], "s", ["g"])
    assert tp.solve_cvar_exact(ssp, 0.5).cvar(0.5) == 2  # needs no linear program
    with pytest.raises(OptionError, match="pip install highspy"):
        tp.solve_cvar_interpolation(ssp, tp.log_atoms(0.1, 3))

"""The Canadian traveller: what is seen, what is known, and roads that decide."""

import itertools

import pytest

import tailpath as tp
import tailpath_cases
from tailpath.errors import ModelError, OptionError
from tailpath_cases import ctp

ROADS = {("camp", "base"): 9, ("camp", "pass"): 2, ("pass", "base"): 3}


def rover(chance=0.2):
    return tailpath_cases.RoadMap(ROADS, {("pass", "base"): chance}, "camp", "base")


def test_what_is_closed_is_seen_on_arrival():
    """Through the pass it is 5, or back and around: 2 + 2 + 9."""
    roads = rover()
    assert [(p, t.closed) for p, t, _ in roads.outcomes(roads.start, "pass")] == [
        (0.8, 0),
        (0.2, 1),
    ]
    for alpha, least in ((1.0, 0.8 * 5 + 0.2 * 13), (0.2, 9.0)):
        assert tp.solve_cvar_lazy(roads, alpha).cvar() == pytest.approx(least)
        listed = tp.SSP.from_functions(roads)
        assert tp.solve_cvar_exact(listed, alpha).cvar(alpha) == pytest.approx(least)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("size", [(3, 3), (3, 4)])
def test_bounds_and_policies_hold_on_maps_that_can_be_listed(size, seed):
    rows, columns = size
    roads = tailpath_cases.canadian_traveller(rows=rows, columns=columns, unsure=4, seed=seed)
    ssp = tp.SSP.from_functions(roads)
    exact = tp.solve_cvar_exact(ssp, 0.1)
    for most in (1, 3, 10**5):
        found = tp.solve_cvar_lazy(roads, 0.1, max_states=most, gap=1e-6)
        for a in (0.1, 0.5, 1.0):
            low, high = found.bounds(a)
            assert low <= exact.bounds(a)[1] and exact.bounds(a)[0] <= high
            assert tp.evaluate(ssp, found.policy(a), a).cvar(a) <= high * (1 + 1e-9)
    low, high = found.bounds()
    assert high - low < 1e-5


def test_the_bounds_are_those_of_the_best_and_the_worst_case():
    roads = tailpath_cases.canadian_traveller(rows=3, columns=3, unsure=4, seed=2)
    ends = []
    for ways in itertools.product((0, 1), repeat=4):
        closed = sum(bit << k for k, bit in enumerate(ways))
        open_ = 0b1111 & ~closed
        ends.append(roads.least(type(roads.start)((0, 0), open_, closed)))
    assert min(ends) == roads.least(roads.start)
    assert max(ends) == roads.surely(roads.start)


def test_names_of_maps():
    assert tp.read("ctp:3x3-3").n_states == tp.read("ctp:3x3-3-1").n_states
    assert len(ctp.named("8x8").unsure) == 30
    assert tp.formats.read_implicit("gridworld:5x5") is None
    with pytest.raises(OptionError, match="ROWSxCOLUMNS"):
        tp.formats.read_implicit("ctp:8")
    with pytest.raises(OptionError, match=r"rows must be a whole number of at least 2, not 2\.5"):
        tailpath_cases.canadian_traveller(rows=2.5, columns=3, unsure=0)
    with pytest.raises(OptionError, match="too many"):
        tp.read("ctp:3x3-99")


def test_maps_that_make_no_sense_are_refused():
    with pytest.raises(ModelError, match="no such road"):
        tailpath_cases.RoadMap(ROADS, {("base", "sea"): 0.1}, "camp", "base")
    with pytest.raises(ModelError, match="surely open"):
        tailpath_cases.RoadMap(ROADS, dict.fromkeys(ROADS, 0.1), "camp", "base")
    with pytest.raises(ModelError, match="begin at a place before"):
        tailpath_cases.RoadMap(ROADS, {("camp", "pass"): 0.1}, "camp", "base")


def test_the_map_is_drawn():
    roads = tailpath_cases.canadian_traveller(rows=3, columns=3, unsure=4)
    lines = roads.plot().get_lines()
    assert sum(line.get_linestyle() == ":" for line in lines) == 4
    state = type(roads.start)((1, 1), 0b1, 0b110)
    lines = roads.plot(state).get_lines()
    assert sum(line.get_linestyle() == ":" for line in lines) == 3
    assert sum(line.get_marker() == "x" for line in lines) == 2

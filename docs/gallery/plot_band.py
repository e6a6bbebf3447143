"""
A band instead of a line
========================

The distribution function of a policy where probabilities were counted: it lies somewhere in the
band.
"""

import tailpath as tp

TRIPS = [
    ("home", "motorway", "junction", 82, 10),
    ("home", "motorway", "junction", 18, 22),
    ("junction", "motorway", "work", 43, 12),
    ("junction", "motorway", "work", 12, 30),
]
model = tp.IntervalSSP.from_counts(TRIPS, "home", ["work"], confidence=0.9)
axes = tp.evaluate(model, {"home": "motorway", "junction": "motorway"}, 0.05).plot()

"""
A policy on a graph
===================

Models without a map are drawn as a graph.
"""

import tailpath as tp

rows = [
    ("home", "motorway", "junction", 0.82, 10),
    ("home", "motorway", "junction", 0.18, 22),
    ("home", "train", "work", 0.85, 33),
    ("home", "train", "work", 0.15, 37),
    ("junction", "motorway", "work", 0.78, 12),
    ("junction", "motorway", "work", 0.22, 30),
    ("junction", "back road", "work", 1, 23),
]
ssp = tp.SSP.from_outcomes(rows, "home", ["work"])
axes = tp.solve(ssp, "late(35)").policy.plot(ssp)

"""Numbers of the paper's problems, measured by an independent prototype: one home for the tests
that compare with them.
"""

#: The least expected cost.
EXPECTED = {
    "gridworld:14x16": 25.247,
    "gridworld:8x9": 12.157,
    "gridworld:5x5": 9.918,
    "river:30x10": 16.9903,
    "river:16x6": 9.6432,
    "river:10x3": 3.15,
}

#: (problem, alpha, predicted, deployed, optimum, VaR of the optimum): CVaRVIQ with 25 atoms from
#: 1e-3 and tolerance 1e-6.
CVAR = [
    ("gridworld:14x16", 0.001, 81.428, 105.209, 89.464, 54),
    ("gridworld:14x16", 0.1, 44.996, 45.611, 45.370, 43),
    ("gridworld:8x9", 0.001, 71.997, 106.272, 84.805, 33),
    ("gridworld:8x9", 0.1, 25.810, 26.046, 25.971, 24),
    ("gridworld:5x5", 0.1, 31.935, 32.170, 32.129, 14),
    ("river:30x10", 0.001, 29.460, 30.926, 30.195, 29),
    ("river:30x10", 0.1, 22.427, 22.612, 22.556, 20),
    ("river:16x6", 0.001, 19.793, 20.601, 20.363, 18.5),
    ("river:10x3", 0.1, 5.356, 5.356, 5.356, 4),
]

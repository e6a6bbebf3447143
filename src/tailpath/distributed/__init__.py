"""One model over the ranks of MPI: parts with ghost rows, and the sweeps of `dp` inside them.

Nothing imports this package: solvers and commands find it by name when they run on ranks.
"""

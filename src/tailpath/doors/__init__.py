"""The only ways of solvers to what is not arithmetic: the LP solver, and the disk."""

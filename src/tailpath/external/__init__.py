"""External solvers: the LP solver."""

"""The only way of solvers to what is not arithmetic: the LP solver."""

"""Exact evaluation of any policy: the distribution of its total cost, VaR and CVaR; and Monte Carlo
beside it.
"""

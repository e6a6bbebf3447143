"""Planners: least expected cost, the published CVaR planners, and the exact CVaR optimum."""

"""Planners: least expected cost, the published CVaR planners, the exact CVaR optimum, and
improvement of a policy.
"""

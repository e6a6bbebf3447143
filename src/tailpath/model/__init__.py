"""The stochastic shortest path problem: its arrays, its names, its exact costs, and how it is
built.
"""

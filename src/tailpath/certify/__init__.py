"""Proofs after the fact: bounds on numbers that `dp` and `evaluation` computed in plain doubles.
The only home of the unit roundoff.
"""

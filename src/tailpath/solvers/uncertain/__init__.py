"""Models whose probabilities are intervals: the best policies against the worst nature, or with the
best.
"""

"""The least CVaR over all policies, by a table over (state, remaining budget)."""

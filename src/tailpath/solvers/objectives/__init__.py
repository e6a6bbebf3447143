"""What people ask for: deadlines, losses, limits, and the frontier between mean and risk; all by
the table over (state, remaining budget).
"""

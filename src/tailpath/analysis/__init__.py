"""What a model alone decides: where goals can be reached, its core, and expected totals with proved
bounds.
"""

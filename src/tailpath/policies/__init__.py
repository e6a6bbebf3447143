"""Policies as pure memory machines, and the chain that a policy makes of a model."""

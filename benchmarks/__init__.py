"""Measurements, run by `make bench`. Each module has a `run()` that prints its table; nothing here
is a test.
"""

"""Measures of risk, one file each. A file of this folder that defines a `Measure` is found by itself; nothing else lists it."""

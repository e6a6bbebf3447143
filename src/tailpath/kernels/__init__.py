"""Compiled loops: arrays in, `out_` arrays filled; no validation, no objects, nothing of ours
imported.
"""

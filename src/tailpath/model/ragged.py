"""Ragged arrays: groups of different lengths, one after the other, with the place where each begins. They live in `tailpath/graph.py`."""

from __future__ import annotations

from tailpath.graph import SMALL, grouped, members_of, offsets_from_lengths, offsets_of, owners

__all__ = ["SMALL", "grouped", "members_of", "offsets_from_lengths", "offsets_of", "owners"]

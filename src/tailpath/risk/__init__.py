"""Measures of risk (`measures.py`), what they have in common (`measure.py`), and their text."""

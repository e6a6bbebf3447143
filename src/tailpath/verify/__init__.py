"""A checker of results in exact arithmetic, which shares no code with what it checks."""

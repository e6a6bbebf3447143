"""Experiments with methods of the register, as a user of the library: `docs/study.md`."""

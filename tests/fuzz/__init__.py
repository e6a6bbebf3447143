"""The search that goes on: `python -m tests.fuzz`, and `make fuzz`."""

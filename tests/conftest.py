"""Settings of all tests. Helpers are imported as `from tests.reference import ...` and `from tests.strategies import ...`."""

import signal

from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background has them ignore Ctrl-C, and every process they start with them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: kernels compile at their first call, and the machine may be busy. The number of examples keeps the suite within minutes.
# The same examples every time, so that a red run can be repeated; `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("search", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("tailpath", settings.get_profile("search"), derandomize=True)
settings.load_profile("tailpath")


def pytest_terminal_summary(terminalreporter):
    """One line if there was no browser to look at the page with."""
    left_out = [report for report in terminalreporter.stats.get("skipped", []) if "no browser" in str(report.longrepr)]
    if left_out:
        terminalreporter.write_line(f"{len(left_out)} tests of the page in a browser were left out: `make browser` installs what they need")

"""Settings of all tests. Helpers are imported as `from tests.reference import ...` and `from
tests.strategies import ...`.
"""

import signal
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background has them ignore Ctrl-C, and every process they
# start with them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: kernels compile at their first call, and the machine may be busy. The number of
# examples keeps the suite within minutes. The same examples every time, so that a red run can be
# repeated; `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile(
    "search", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("tailpath", settings.get_profile("search"), derandomize=True)
settings.load_profile("tailpath")


def pytest_runtest_setup(item):
    """Leave out what needs a package that is not there, `@pytest.mark.needs(package, extra=)`, and
    what kills processes where they cannot be killed.
    """
    if item.get_closest_marker("kill") and not hasattr(signal, "SIGKILL"):
        pytest.skip("processes are killed as on Unix")
    for mark in item.iter_markers("needs"):
        for package in mark.args:
            if find_spec(package) is None:
                pytest.skip(f"the extra {mark.kwargs['extra']} is not installed: no {package}")


def pytest_terminal_summary(terminalreporter):
    """One line if there was no browser to look at the page with, one for missing extras, and one if
    there was no MPI.
    """
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    left_out = [text for text in skipped if "no browser" in text]
    if left_out:
        terminalreporter.write_line(
            f"{len(left_out)} tests of the page in a browser were left out: `make browser` installs"
            " what they need"
        )
    without = [text for text in skipped if "the extra " in text]
    if without:
        names = sorted({text.partition("the extra ")[2].split()[0].strip("`") for text in without})
        terminalreporter.write_line(
            f"{len(without)} tests of real domains and other tools were left out:"
            f" pip install 'tailpath[{','.join(names)}]' brings what they need"
        )
    left_out = [text for text in skipped if "no MPI" in text]
    if left_out:
        terminalreporter.write_line(
            f"{len(left_out)} tests over the ranks of MPI were left out: `make tools` installs what"
            " they need"
        )

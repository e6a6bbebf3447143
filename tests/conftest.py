"""Settings of all tests. Helpers are imported as `from tests.reference import ...` and `from tests.strategies import ...`."""

from hypothesis import HealthCheck, settings

# No deadline: kernels compile at their first call, and the machine may be busy. The number of examples keeps the suite within minutes.
settings.register_profile("tailpath", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tailpath")

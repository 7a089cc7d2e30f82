"""How property tests run: without a clock, for a busy machine is no failure."""

from hypothesis import HealthCheck, settings


def pytest_configure() -> None:
    settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("steady")

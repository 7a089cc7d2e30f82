"""What to do where a service cannot be had on this machine."""

import os
from typing import NoReturn

import pytest


def missing(what: str, way_out: str) -> NoReturn:
    """Fails the test with the way to get what is missing; skips it where TESTS_ALLOW_MISSING=1."""
    words = f"{what}. {way_out}"
    if os.environ.get("TESTS_ALLOW_MISSING") == "1":
        pytest.skip(words)
    pytest.fail(f"{words} (TESTS_ALLOW_MISSING=1 skips what cannot be had.)", pytrace=False)

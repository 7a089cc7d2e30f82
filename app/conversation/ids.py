"""The one rule for ids that come from outside."""

import re

from app.errors import InvalidInput

LONGEST_ID = 200

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f/?#\ud800-\udfff]")


def is_id(text: str) -> bool:
    """Whether it may be an id: 1 to 200 code points without control characters, `/`, `?`, `#`, lone
    surrogates, and not `.` or `..`, so that it is one segment of a path wherever it stands."""
    return 0 < len(text) <= LONGEST_ID and text not in (".", "..") and _UNFIT.search(text) is None


def check_id(text: str, field: str) -> str:
    """The id, if it is one. InvalidInput that names the field otherwise."""
    if not is_id(text):
        raise InvalidInput(
            f"An id has 1 to {LONGEST_ID} characters, none of them a control character, '/', '?' or '#', "
            "and is not '.' or '..'.",
            field=field,
        )
    return text

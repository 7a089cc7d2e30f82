"""JSON as it goes on the wire: one line, UTF-8, never refused."""

import json

import orjson


def encode(value: object) -> bytes:
    """One JSON document.

    What the fast encoder refuses still arrives: integers of any size as they are, a lone surrogate as
    U+FFFD. NaN and the infinities are null in both ways, as JSON has no word for them.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def canonical(value: object) -> bytes:
    """One spelling for equal JSON: members sorted, no space. Equal bytes mean the same document."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

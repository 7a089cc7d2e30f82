"""JSON as it goes on the wire: one line, UTF-8, never refused."""

import json

import orjson

_SEPARATORS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))


def encode(value: object) -> bytes:
    """One JSON document.

    What the fast encoder refuses still arrives: integers of any size as they are, a lone surrogate as
    U+FFFD. NaN and the infinities are null in both ways, as JSON has no word for them.
    """
    try:
        return _one_line(orjson.dumps(value))
    except TypeError:
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"))
        return _one_line(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode())


def _one_line(document: bytes) -> bytes:
    """Spells out the three characters that JSON allows as they are and some readers take for line ends."""
    if b"\xe2\x80" in document or b"\xc2\x85" in document:
        for raw, spelt in _SEPARATORS:
            document = document.replace(raw, spelt)
    return document


def canonical(value: object) -> bytes:
    """One spelling for equal JSON: members sorted, no space. Equal bytes mean the same document."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

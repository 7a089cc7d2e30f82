"""The law of origins: any string may name an injector, so no code asks for a particular one.

What is found: comparisons, memberships, matches, string searches and table look-ups that bring an origin
(or a variable of the file that got its value) together with a literal or an upper-case constant. An origin
that travels through a function's parameter under another name is not found.
"""

import ast
from collections.abc import Iterator

from tests.laws.source import aliases, any_named

_SEARCHES = frozenset({"startswith", "endswith", "find", "index", "count", "__eq__", "fullmatch", "match"})


def offences(tree: ast.AST) -> list[int]:
    """The lines that compare an origin with a constant."""
    words = aliases(tree, "origin")
    return sorted({node.lineno for node in _suspects(tree, words)})


def _suspects(tree: ast.AST, words: frozenset[str]) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare() if _compares(node, words):
                yield node
            case ast.Call() if _searches(node, words):
                yield node
            case ast.Subscript(value=ast.Dict() as table, slice=key) if any_named(key, words):
                if any(_is_constant(entry) for entry in table.keys if entry is not None):
                    yield node
            case ast.Match(subject=subject, cases=cases) if any_named(subject, words):
                if any(isinstance(part, ast.MatchValue) for case in cases for part in ast.walk(case.pattern)):
                    yield subject
            case _:
                pass


def _compares(node: ast.Compare, words: frozenset[str]) -> bool:
    sides = [node.left, *node.comparators]
    return any(any_named(side, words) for side in sides) and any(_is_constant(side) for side in sides)


def _searches(node: ast.Call, words: frozenset[str]) -> bool:
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _SEARCHES:
        return False
    parties = [node.func.value, *node.args]
    return any(any_named(party, words) for party in parties) and any(_is_constant(p) for p in parties)


def _is_constant(expression: ast.expr) -> bool:
    match expression:
        case ast.Constant(value=str() | bytes()):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(_is_constant(part) for part in parts)
        case ast.Call(func=ast.Name(id="frozenset" | "set" | "tuple"), args=[inner]):
            return _is_constant(inner)
        case _:
            return False

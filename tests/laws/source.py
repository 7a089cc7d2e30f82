"""The application's source as syntax trees, and small questions to ask of an expression."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

APP = Path(__file__).parent.parent.parent / "app"
Function = ast.FunctionDef | ast.AsyncFunctionDef
_STRINGS = frozenset({"lower", "upper", "strip", "casefold", "removeprefix", "removesuffix"})


@dataclass(frozen=True, slots=True)
class Module:
    """One file: its path below `app`, its text and its tree."""

    name: str
    source: str
    tree: ast.Module


def modules() -> Iterator[Module]:
    """Every module of the application."""
    for path in sorted(APP.rglob("*.py")):
        source = path.read_text()
        yield Module(path.relative_to(APP).as_posix(), source, ast.parse(source))


def names(expression: ast.AST, word: str) -> bool:
    """Whether this expression itself is the thing called `word`: a name, an attribute, an item.

    A string method on it is still the same thing; its length is not.
    """
    match expression:
        case ast.Name(id=found) | ast.Attribute(attr=found) if found == word:
            return True
        case ast.Subscript(slice=ast.Constant(value=found)) if found == word:
            return True
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in _STRINGS:
            return names(value, word)
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=found), *_]):
            return found == word
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=found), *_]):
            return found == word
        case ast.Call(func=ast.Name(id="str"), args=[value]) | ast.NamedExpr(value=value):
            return names(value, word)
        case _:
            return False


def aliases(tree: ast.AST, word: str) -> frozenset[str]:
    """The word, and the variables of this file that were given its value."""
    found = {word}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=id)], value=value) if names(value, word):
                found.add(id)
            case ast.NamedExpr(target=ast.Name(id=id), value=value) if names(value, word):
                found.add(id)
            case ast.AnnAssign(target=ast.Name(id=id), value=ast.expr() as value) if names(value, word):
                found.add(id)
            case _:
                pass
    return frozenset(found)


def any_named(expression: ast.AST, words: frozenset[str]) -> bool:
    """Whether the expression is one of these things."""
    return any(names(expression, word) for word in words)


def docstrings(tree: ast.AST) -> set[int]:
    """The ids of the nodes that are bare strings: documentation, and no code."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }

"""The law of readers: one module decides who sees injected messages and reminders.

What is found elsewhere: every condition, comparison, match or table look-up that involves `injected` or a
member of `Injected`, also as text of SQL; and every place that leaves Reminder blocks out: a negative test,
a filter that asks for nothing but reminders, a branch for them that does nothing. Making an injected
message, storing the flag and turning a reminder into a model's words are no offence. Code that takes Text
blocks alone is not found: behind a reader's view that is right.
"""

import ast
import re
from collections.abc import Iterator

from tests.laws.source import aliases, any_named, docstrings

_SQL = re.compile(r"\binjected\b\s*(=|<>|!=|\bIN\b|\bIS\b|\bNOT\b|\bLIKE\b)", re.IGNORECASE)
_NOTHING = (ast.Pass, ast.Continue)


def offences(tree: ast.AST) -> list[int]:
    """The lines that decide who reads what."""
    flags = aliases(tree, "injected")
    lines = {node.lineno for node in _decisions(tree) if _involves_flag(node, flags)}
    lines |= {node.lineno for node in _left_out(tree)}
    lines |= {node.lineno for node in _sql(tree)}
    return sorted(lines)


def _decisions(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions on which something depends."""
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
                yield test
            case ast.comprehension(ifs=tests):
                yield from tests
            case ast.BoolOp(values=operands):
                yield from operands
            case ast.Compare():
                yield node
            case ast.UnaryOp(op=ast.Not(), operand=asked) | ast.Match(subject=asked):
                yield asked
            case ast.Subscript(value=ast.Dict(), slice=asked):
                yield asked
            case ast.Call():
                yield from _asked_by_call(node)
            case _:
                pass


def _asked_by_call(call: ast.Call) -> Iterator[ast.expr]:
    match call:
        case ast.Call(func=ast.Attribute(attr="in_" | "is_" | "not_in" | "is_not", value=column)):
            yield column
        case ast.Call(func=ast.Name(id="filter"), args=[ast.Lambda(body=body), *_]):
            yield body
        case _:
            pass


def _involves_flag(expression: ast.expr, flags: frozenset[str]) -> bool:
    return any(
        any_named(node, flags)
        or (isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[-1] == "Injected")
        for node in ast.walk(expression)
    )


def _left_out(tree: ast.AST) -> Iterator[ast.expr]:
    """The tests by which reminders are left out."""
    for node in ast.walk(tree):
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=test) if _asks_for_reminders(test):
                yield test
            case ast.comprehension(ifs=tests):
                yield from filter(_asks_for_reminders, tests)
            case ast.Call(func=ast.Name(id="filter"), args=[ast.Lambda(body=body), *_]):
                if _asks_for_reminders(body):
                    yield body
            case ast.If(test=test, body=body) if _asks_for_reminders(test) and _does_nothing(body):
                yield test
            case ast.Match(subject=subject, cases=cases) if any(map(_drops_reminders, cases)):
                yield subject
            case ast.Compare() if _compares_reminder(node):
                yield node
            case _:
                pass


def _asks_for_reminders(test: ast.expr) -> bool:
    """`isinstance(x, Reminder)`, of nothing but that class."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            return _is_reminder(kinds) or (
                isinstance(kinds, ast.Tuple) and all(_is_reminder(kind) for kind in kinds.elts)
            )
        case _:
            return False


def _is_reminder(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "Reminder") or (
        isinstance(node, ast.Attribute) and node.attr == "Reminder"
    )


def _compares_reminder(node: ast.Compare) -> bool:
    """Comparing a type with the class, or with its discriminator."""
    return any(
        _is_reminder(side) or (isinstance(side, ast.Constant) and side.value == "reminder")
        for side in (node.left, *node.comparators)
    )


def _drops_reminders(case: ast.match_case) -> bool:
    return (
        isinstance(case.pattern, ast.MatchClass)
        and _is_reminder(case.pattern.cls)
        and _does_nothing(case.body)
    )


def _does_nothing(body: list[ast.stmt]) -> bool:
    return all(isinstance(step, _NOTHING) or _returns_nothing(step) for step in body)


def _returns_nothing(step: ast.stmt) -> bool:
    match step:
        case ast.Return(value=None) | ast.Return(value=ast.Constant(value=None | "")):
            return True
        case ast.Return(value=ast.List(elts=[]) | ast.Tuple(elts=[])):
            return True
        case _:
            return False


def _sql(tree: ast.AST) -> Iterator[ast.Constant]:
    documentation = docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if id(node) not in documentation and _SQL.search(text):
                yield node
            case _:
                pass

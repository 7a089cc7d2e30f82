"""The agent that is there when none is named: `assistant`, with tools that need nothing from outside."""

import ast
import random
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from app.agent.agent import Agent
from app.agent.models.base import Model
from app.agent.tools import ToolContext, ToolError, tool

NAME = "assistant"
INSTRUCTIONS = "You are a helpful assistant. Use the tools for the time, for arithmetic and for dice."
_LARGEST_POWER = 1000
_LONGEST_EXPRESSION = 500
_MOST_DIGITS_BITS = 4096

Number = int | float


def _power(left: Number, right: Number) -> Number:
    if abs(right) > _LARGEST_POWER:
        raise OverflowError("the power is too large")
    if left < 0 and not float(right).is_integer():
        raise ArithmeticError("a negative number has no real root here")
    return left**right


_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: _power,
}


def assistant(model: Model | None = None, instructions: str = "") -> Agent:
    """The built-in agent, with its own instructions where none are given."""
    return Agent(
        NAME,
        model=model,
        instructions=instructions or INSTRUCTIONS,
        tools=[current_time, calculate, roll_dice],
        description="Talks, tells the time anywhere, does arithmetic and rolls dice.",
    )


@tool
def current_time(run: ToolContext, zone: str = "UTC") -> str:
    """Tells the present date and time in a time zone.

    Args:
        zone: an IANA name such as Europe/Zurich, or UTC
    """
    now = datetime.fromtimestamp(run.clock.now() // 1_000_000_000, _zone(zone))
    return now.strftime("%A, %d %B %Y, %H:%M:%S %Z")


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolError(f"there is no time zone named {name}") from None


@tool
def calculate(expression: str) -> str:
    """Works out an arithmetic expression with + - * / // % ** and brackets.

    Args:
        expression: for example (2 + 3) * 4
    """
    if len(expression) > _LONGEST_EXPRESSION:
        raise ToolError(f"the expression is longer than {_LONGEST_EXPRESSION} characters")
    try:
        return str(_value(ast.parse(expression.strip(), mode="eval").body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(f"this is not arithmetic: {expression}") from None
    except ArithmeticError as error:
        raise ToolError(f"this has no value: {error}") from None


def _value(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = node.value
        assert isinstance(value, int | float)
        return value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _value(node.operand)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        return _combine(node.op, _value(node.left), _value(node.right))
    raise ValueError("not arithmetic")


def _combine(kind: ast.operator, left: Number, right: Number) -> Number:
    work = _BINARY.get(type(kind))
    if work is None:
        raise ValueError("not arithmetic")
    value = work(left, right)
    if isinstance(value, int) and value.bit_length() > _MOST_DIGITS_BITS:
        raise OverflowError("the number is too large")
    return value


@tool
def roll_dice(
    sides: Annotated[int, Field(ge=2, le=1000)] = 6, count: Annotated[int, Field(ge=1, le=100)] = 1
) -> list[int]:
    """Rolls dice and gives the number on each.

    Args:
        sides: how many sides a die has
        count: how many dice are rolled
    """
    return [random.randint(1, sides) for _ in range(count)]

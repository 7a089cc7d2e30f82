"""Laws of the source that no single test of behaviour could hold."""

import ast
import inspect
import statistics
from collections.abc import Iterator
from typing import get_args, get_type_hints

import pytest

from app.conversation.messages import Message
from app.conversation.words import Words
from tests.laws import origins, readers
from tests.laws.source import Function, modules

THE_ONE_PLACE = "conversation/views.py"


@pytest.mark.requirement("MSG-05")
def test_no_code_compares_an_origin_with_a_constant():
    found = [f"app/{m.name}:{line}" for m in modules() for line in origins.offences(m.tree)]
    assert found == [], "any string may name an injector; give an HTTP Origin another name"


@pytest.mark.requirement("MSG-06")
def test_one_module_alone_decides_who_reads_what():
    found = {m.name: readers.offences(m.tree) for m in modules()}
    assert found.pop(THE_ONE_PLACE), "the law looks for the wrong thing: it does not see the rule itself"
    assert {f"app/{name}": lines for name, lines in found.items() if lines} == {}


@pytest.mark.requirement("MSG-08")
def test_a_message_has_no_accessor_that_gives_a_readers_string():
    members = {**vars(Words), **vars(Message)}
    texts = {name for name, member in members.items() if name[0] != "_" and _gives_a_string(member)}
    assert texts == {"join_text", "to_json"}
    assert Message.model_computed_fields == {}


def _gives_a_string(member: object) -> bool:
    function = member.fget if isinstance(member, property) else member
    if not inspect.isfunction(function):
        return False
    returned = get_type_hints(function).get("return")
    return str in (returned, *get_args(returned))


@pytest.mark.requirement("MSG-05")
@pytest.mark.parametrize(
    "planted",
    [
        "if message.origin == 'memory': pass",
        "x = 'memory' != entry['origin']",
        "x = row.get('origin') in ('memory', 'skills')",
        "x = getattr(message, 'origin') in {'memory'}",
        "x = message.origin.lower() == MEMORY",
        "x = origin.startswith('mem')",
        "x = 'mem' in message.origin",
        "who = message.origin\nx = who == 'memory'",
        "x = [m for m in ms if m.origin is not Origins.MEMORY]",
        "x = {'memory': 1}[message.origin]",
        "match message.origin:\n    case 'memory' | 'skills': pass",
        "x = re.fullmatch('mem.*', message.origin)",
        "x = select(t).where(t.c.origin == 'memory')",
    ],
)
def test_a_planted_question_for_one_origin_is_found(planted: str):
    assert origins.offences(ast.parse(planted)) != []


@pytest.mark.requirement("MSG-05")
@pytest.mark.parametrize(
    "fine",
    [
        "m = user_message('x', origin='memory')",
        "x = message.origin == other.origin",
        "x = origin in settings.cors_origins",
        "x = len(message.origin) > 200",
        "x = message.origin is None",
        "x = message.origin if message.origin else None",
    ],
)
def test_what_asks_for_no_particular_origin_is_fine(fine: str):
    assert origins.offences(ast.parse(fine)) == []


@pytest.mark.requirement("MSG-06")
@pytest.mark.parametrize(
    "planted",
    [
        "if message.injected: pass",
        "x = message.injected is Injected.NONE",
        "x = message.injected.value == 'none'",
        "x = [m for m in ms if not m.injected]",
        "x = kind == Injected.META",
        "x = 1 if row['injected'] else 2",
        "flag = message.injected\nif flag: pass",
        "match message.injected:\n    case _: pass",
        "x = {Injected.NONE: 1}[message.injected]",
        "x = list(filter(lambda m: m.injected, ms))",
        "x = select(t).where(t.c.injected == 'none')",
        "x = t.c.injected.in_(['none'])",
        "x = text(\"SELECT 1 FROM entries WHERE injected = 'none'\")",
        "x = [b for b in bs if not isinstance(b, Reminder)]",
        "x = [b for b in bs if isinstance(b, blocks.Reminder)]",
        "x = [b for b in bs if b.type != 'reminder']",
        "x = [b for b in bs if type(b) is not Reminder]",
        "x = list(filter(lambda b: isinstance(b, Reminder), bs))",
        "for b in bs:\n    if isinstance(b, Reminder): continue",
        "def f(b):\n    if isinstance(b, (Reminder,)): return ''",
        "match b:\n    case Reminder(): pass\n    case Text(): keep(b)",
    ],
)
def test_a_planted_decision_about_readers_is_found(planted: str):
    assert readers.offences(ast.parse(planted)) != []


@pytest.mark.requirement("MSG-06")
@pytest.mark.parametrize(
    "fine",
    [
        "m = user_message('x', injected=Injected.META)",
        "m = message.model_copy(update={'injected': Injected.EPHEMERAL})",
        "row = {'injected': message.injected, 'origin': message.origin}",
        "column = Column('injected', String, nullable=False)",
        "x = [b for b in bs if isinstance(b, Text | Reminder)]",
        "if isinstance(b, Reminder):\n    parts.append(wrapped(b.text))",
        "match b:\n    case Reminder(text=text): parts.append(text)",
        "x = reader_view(messages)",
        "'''A message that was injected is meta.'''",
    ],
)
def test_making_storing_and_telling_a_model_is_fine(fine: str):
    assert readers.offences(ast.parse(fine)) == []


def _functions() -> Iterator[tuple[str, int]]:
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, Function) and node.end_lineno is not None:
                yield f"app/{module.name}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


def test_functions_stay_small():
    lengths = dict(_functions())
    assert {name: length for name, length in lengths.items() if length > 60} == {}
    assert statistics.quantiles(lengths.values(), n=10)[-1] <= 30


def test_files_stay_small():
    lengths = {f"app/{module.name}": len(module.source.splitlines()) for module in modules()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}

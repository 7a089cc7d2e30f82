"""Records that hooks append beside messages: told and stored in order, and never in a prompt."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from app.agent.agent import Agent
from app.agent.events import AgentEvent, Appended
from app.agent.hooks import Addition, AfterTurn, BeforeStop
from app.agent.models.scripted import ScriptedModel
from app.agent.records import LARGEST_RECORD
from app.conversation.entries import CustomEntry, Entry, MessageEntry, TransientEntry
from app.conversation.messages import Injected, user_message
from app.conversation.outcomes import EndReason
from app.conversation.views import stored_view
from tests.agent.hooked import call
from tests.agent.running import answer, collect, end_of, texts


def look() -> str:
    return "sunny"


def appended(events: Sequence[AgentEvent]) -> list[Entry]:
    return [event.entry for event in events if isinstance(event, Appended)]


def custom(events: Sequence[AgentEvent]) -> list[CustomEntry]:
    return [entry for entry in appended(events) if isinstance(entry, CustomEntry)]


@pytest.mark.requirement("AGT-06", "AGT-08", "AGT-11")
async def test_records_of_a_hook_are_told_in_order_beside_its_messages_and_reach_no_prompt() -> None:
    def keep(turn: AfterTurn) -> Sequence[Addition]:
        return (
            CustomEntry("weather", {"turn": turn.turn}),
            user_message("a note", injected=Injected.META),
            TransientEntry("toast", "hello"),
            CustomEntry("done", None),
        )

    model = ScriptedModel([[call("look", "c")], "end", "more"])
    agent = Agent("bot", model=model, tools=[look], after_turn=keep)
    told = await collect(agent.run("go"))
    shapes = [(type(e), e.name if not isinstance(e, MessageEntry) else "") for e in appended(told)]
    once = [(CustomEntry, "weather"), (MessageEntry, ""), (TransientEntry, "toast"), (CustomEntry, "done")]
    assert shapes == [*once, *once]
    assert [entry.value for entry in custom(told)] == [{"turn": 1}, None, {"turn": 2}, None]
    assert all(not isinstance(entry, TransientEntry) for entry in stored_view(appended(told)))
    await collect(agent.run("again"))
    prompts = "".join(message.to_json() for prompt in model.prompts for message in prompt.messages)
    assert "a note" in prompts
    assert "weather" not in prompts
    assert "toast" not in prompts


@pytest.mark.requirement("AGT-11")
async def test_a_record_gets_a_time_a_sender_and_an_id_of_its_own_each_time() -> None:
    mine = CustomEntry("audit", {"text": "a\x00\ud800"}, id="taken")
    theirs = CustomEntry("audit", 1, created_at=7, sender_id="clerk")

    def keep(_: AfterTurn) -> Sequence[Addition]:
        return [mine, mine, theirs]

    first, second, third = custom(
        await answer(Agent("bot", model=ScriptedModel(["x"]), after_turn=keep), "go")
    )
    assert first.value == {"text": "a\ufffd\ufffd"}
    assert first.created_at is not None
    assert first.sender_id == "bot"
    assert (third.created_at, third.sender_id) == (7, "clerk")
    assert len({first.id, second.id, third.id, "taken"}) == 4


@pytest.mark.requirement("AGT-11")
async def test_what_a_hook_does_to_its_record_later_changes_nothing() -> None:
    value: dict[str, Any] = {"n": 1}

    def keep(_: AfterTurn) -> Sequence[Addition]:
        return [CustomEntry("audit", value)]

    def spoil(_: AfterTurn) -> None:
        value["n"] = 99

    (record,) = custom(await answer(Agent("bot", model=ScriptedModel(["x"]), after_turn=[keep, spoil]), "go"))
    assert record.value == {"n": 1}


@pytest.mark.requirement("AGT-07", "AGT-11")
async def test_records_alone_do_not_make_a_run_go_on_and_a_message_among_them_does() -> None:
    def guard(stop: BeforeStop) -> Sequence[Addition]:
        record = CustomEntry("checked", stop.turn)
        return [record, user_message("Once more.")] if stop.turn == 1 else [record, TransientEntry("t", 1)]

    model = ScriptedModel(["one", "two", "three"])
    told = await answer(Agent("bot", model=model, before_stop=guard), "go")
    assert len(model.prompts) == 2
    assert texts(model.prompts[1].messages) == ["go", "one", "Once more."]
    assert [entry.value for entry in custom(told)] == [1, 2]
    assert end_of(told).reason is EndReason.DONE


def deep() -> Any:
    value: Any = []
    for _ in range(2000):
        value = [value]
    return value


WRONG: list[Any] = [
    CustomEntry("", 1),
    CustomEntry("n" * 201, 1),
    CustomEntry(cast(Any, 5), 1),
    CustomEntry("audit", cast(Any, object())),
    CustomEntry("audit", deep()),
    CustomEntry("audit", "x" * LARGEST_RECORD),
    CustomEntry("audit", 1, created_at=cast(Any, "noon")),
    CustomEntry("audit", 1, created_at=2**63),
    CustomEntry("audit", 1, sender_id="a/b"),
    TransientEntry("", 1),
    TransientEntry("toast", cast(Any, {1: 2})),
    MessageEntry(user_message("x")),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("kind", ["after_turn", "before_stop"])
async def test_a_record_that_is_none_fails_the_run_and_nothing_of_the_hook_is_told(
    kind: str, wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def keep(_: object) -> Any:
        return [CustomEntry("fine", 1), wrong]

    hooks: dict[str, Any] = {kind: keep}
    told = await answer(Agent("bot", model=ScriptedModel(["end"]), **hooks), "go")
    assert end_of(told).reason is EndReason.INTERNAL_ERROR
    assert appended(told) == []
    assert "keep" in caplog.text


async def test_a_prompt_is_made_of_messages_alone() -> None:
    def shape(_: object) -> Any:
        return [CustomEntry("fine", 1)]

    model = ScriptedModel(["end"])
    told = await answer(Agent("bot", model=model, before_call=cast(Any, shape)), "go")
    assert end_of(told).reason is EndReason.INTERNAL_ERROR
    assert model.prompts == []

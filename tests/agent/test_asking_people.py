"""Tools that wait for a person: approval before they run, questions while they do."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.agent.agent import Agent
from app.agent.context import StopSignal
from app.agent.events import AgentEvent, ToolDone
from app.agent.limits import Limits
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import ToolContext, ToolLike, tool
from app.conversation.blocks import Reminder
from app.conversation.interrupts import Answer, Interrupt
from app.conversation.messages import Message, Role
from app.conversation.outcomes import EndReason, RunStatus
from app.conversation.views import for_reader
from app.errors import Conflict
from tests.agent.running import QUICK, StepClock, bounded, collect, context, end_of, texts


def call(name: str, arguments: str = "{}", id: str = "c1") -> CallPiece:
    return CallPiece(id, arguments, name=name, call_id=id)


async def told(agent: Agent, text: str = "go") -> list[AgentEvent]:
    return [event async for event in bounded(agent.run(text))]


async def resumed(agent: Agent, *answers: Answer) -> list[AgentEvent]:
    return [event async for event in bounded(agent.resume(answers))]


def asked(events: Sequence[AgentEvent]) -> list[Interrupt]:
    end = end_of(events)
    assert end.status is RunStatus.PAUSED
    return list(end.interrupts)


def results(events: Sequence[AgentEvent]) -> list[Message]:
    return [event.message for event in events if isinstance(event, ToolDone)]


def paying(log: list[str], *replies: str) -> Agent:
    @tool(approval=True)
    def pay(amount: int) -> str:
        log.append(f"paid {amount}")
        return f"{amount} paid"

    model = ScriptedModel([[call("pay", '{"amount": 5}')], *(replies or ("thanks",))])
    return Agent("bot", model=model, tools=[pay], limits=QUICK, clock=StepClock())


@pytest.mark.requirement("AGT-14")
async def test_a_call_that_needs_approval_pauses_the_run_and_runs_once_when_approved() -> None:
    log: list[str] = []
    agent = paying(log)
    (question,) = asked(await told(agent))
    assert (question.reason, question.call_id, log) == ("tool_call", "c1", [])
    assert question.metadata == {"toolName": "pay", "arguments": {"amount": 5}}
    again = await resumed(agent, Answer(question.id, payload={"approved": True}))
    assert (log, texts(results(again))) == (["paid 5"], ["5 paid"])
    assert end_of(again).reason is EndReason.DONE
    assert [message.role for message in agent.messages()] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL_RESULT,
        Role.ASSISTANT,
    ]


@pytest.mark.requirement("AGT-14")
@pytest.mark.parametrize(
    ("payload", "cancelled", "words"),
    [
        ({"approved": False}, False, "declined"),
        ({"approved": False, "message": "too much"}, False, "too much"),
        ({"approved": "yes"}, False, "declined"),
        (None, True, "without an answer"),
    ],
)
async def test_what_is_not_approved_does_not_run_and_the_model_is_told(
    payload: dict[str, bool | str] | None, cancelled: bool, words: str
) -> None:
    log: list[str] = []
    agent = paying(log)
    (question,) = asked(await told(agent))
    answer = Answer(question.id, cancelled=cancelled, payload=dict(payload) if payload else None)
    (result,) = results(await resumed(agent, answer))
    assert (log, result.is_error) == ([], True)
    assert words in result.join_text()


@pytest.mark.requirement("AGT-10", "AGT-14")
async def test_edited_arguments_are_used_and_only_the_model_is_told_of_them() -> None:
    log: list[str] = []
    agent = paying(log)
    (question,) = asked(await told(agent))
    answer = Answer(question.id, payload={"approved": True, "editedArgs": {"amount": 3}, "message": "less"})
    (result,) = results(await resumed(agent, answer))
    assert log == ["paid 3"]
    notes = [block.text for block in result.content if isinstance(block, Reminder)]
    assert any('{"amount":3}' in note for note in notes)
    assert any("less" in note for note in notes)
    assert for_reader(result).join_text() == "3 paid"
    assert agent.messages()[1].tool_calls()[0].arguments == '{"amount": 5}'


async def test_edited_arguments_that_do_not_fit_are_refused_and_the_model_is_told_whose_they_are() -> None:
    log: list[str] = []
    agent = paying(log)
    (question,) = asked(await told(agent))
    answer = Answer(question.id, payload={"approved": True, "editedArgs": {"amount": "much"}})
    (result,) = results(await resumed(agent, answer))
    assert (log, result.is_error) == ([], True)
    notes = [block.text for block in result.content if isinstance(block, Reminder)]
    assert any('{"amount":"much"}' in note for note in notes)
    assert "much" not in for_reader(result).join_text()


async def test_a_question_without_an_answer_is_asked_again_as_it_was() -> None:
    agent = paying([])
    (question,) = asked(await told(agent))
    assert asked(await resumed(agent)) == [question]


async def test_of_two_questions_the_answered_call_runs_and_the_other_is_asked_again() -> None:
    log: list[str] = []
    calls = [call("pay", f'{{"amount": {amount}}}', f"c{amount}") for amount in (1, 2)]
    model = ScriptedModel([calls, "end"])
    agent = paying(log).with_model(model)
    first, second = asked(await told(agent))
    assert asked(await resumed(agent, Answer(second.id, payload={"approved": True}))) == [first]
    assert (log, len(model.prompts)) == (["paid 2"], 1)
    await resumed(agent, Answer(first.id, payload={"approved": True}))
    assert log == ["paid 2", "paid 1"]
    assert [one.call_id for one in model.prompts[1].messages if one.call_id] == ["c1", "c2"]


async def test_arguments_that_do_not_fit_are_refused_without_asking_anybody() -> None:
    log: list[str] = []
    agent = paying(log)
    agent = agent.with_model(ScriptedModel([[call("pay", '{"amount": "much"}')], "sorry"]))
    events = await told(agent)
    assert end_of(events).reason is EndReason.DONE
    assert "cannot be used" in results(events)[0].join_text()


async def test_approval_may_depend_on_the_arguments_and_one_that_cannot_be_told_is_asked_for() -> None:
    def large(arguments: dict[str, int]) -> bool:
        if arguments["amount"] == 0:
            raise ZeroDivisionError
        return arguments["amount"] > 10

    @tool(approval=large)
    def pay(amount: int) -> str:
        return f"{amount} paid"

    replies = [[call("pay", f'{{"amount": {amount}}}', f"c{amount}") for amount in (5, 50, 0)], "end"]
    agent = Agent("bot", model=ScriptedModel(replies), tools=[pay], limits=QUICK)
    events = await told(agent)
    assert texts(results(events)) == ["5 paid"]
    assert [question.call_id for question in asked(events)] == ["c50", "c0"]


@pytest.mark.requirement("AGT-14")
async def test_a_tool_asks_twice_and_goes_on_from_its_start_with_both_answers() -> None:
    starts: list[str] = []

    def book(context: ToolContext) -> str:
        starts.append("start")
        try:
            city = context.ask("Where?", {"type": "string"})
            day = context.ask("When?", {"type": "string"})
        except Exception:
            return "swallowed"
        return f"{city} on {day}"

    model = ScriptedModel([[call("book")], "done"])
    agent = Agent("bot", model=model, tools=[book], limits=QUICK)
    (where,) = asked(await told(agent))
    assert (where.reason, where.message, where.response_schema) == (
        "input_required",
        "Where?",
        {"type": "string"},
    )
    (when,) = asked(await resumed(agent, Answer(where.id, payload="Basel")))
    assert when.message == "When?"
    (result,) = results(await resumed(agent, Answer(when.id, payload="Monday")))
    assert (result.join_text(), len(starts), len(model.prompts)) == ("Basel on Monday", 3, 2)


async def test_an_answer_is_given_again_as_it_was_whatever_the_tool_did_to_it() -> None:
    given: list[str] = []

    async def book(context: ToolContext) -> str:
        try:
            place = context.ask("Where?")
        except Exception:
            return "swallowed"
        given.append(str(place))
        assert isinstance(place, dict)
        place["city"] = "elsewhere"
        return str(context.ask("When?"))

    agent = Agent("bot", model=ScriptedModel([[call("book")], "done"]), tools=[book], limits=QUICK)
    (where,) = asked(await told(agent))
    (when,) = asked(await resumed(agent, Answer(where.id, payload={"city": "Basel"})))
    await resumed(agent, Answer(when.id, payload="Monday"))
    assert given == ["{'city': 'Basel'}"] * 2


async def test_a_question_that_is_closed_ends_the_call_without_the_tool() -> None:
    starts: list[str] = []

    async def book(context: ToolContext) -> str:
        starts.append("start")
        return str(context.ask("Where?"))

    agent = Agent("bot", model=ScriptedModel([[call("book")], "done"]), tools=[book], limits=QUICK)
    (where,) = asked(await told(agent))
    (result,) = results(await resumed(agent, Answer(where.id, cancelled=True)))
    assert (result.is_error, starts) == (True, ["start"])


async def test_an_approved_tool_that_asks_is_not_approved_again() -> None:
    @tool(approval=True)
    def pay(amount: int, context: ToolContext) -> str:
        return f"{amount}: {context.ask('Note?')}"

    model = ScriptedModel([[call("pay", '{"amount": 5}')], "done"])
    agent = Agent("bot", model=model, tools=[pay], limits=QUICK)
    (leave,) = asked(await told(agent))
    answer = Answer(leave.id, payload={"approved": True, "editedArgs": {"amount": 4}})
    (note,) = asked(await resumed(agent, answer))
    (result,) = results(await resumed(agent, Answer(note.id, payload="rent")))
    assert for_reader(result).join_text() == "4: rent"


async def test_calls_beside_one_that_waits_are_run_and_told_in_their_order() -> None:
    def look(what: str) -> str:
        return f"saw {what}"

    log: list[str] = []

    @tool(approval=True)
    def pay() -> str:
        log.append("paid")
        return "paid"

    calls = [call("look", '{"what": "a"}', "a"), call("pay", "{}", "p"), call("look", '{"what": "b"}', "b")]
    tools: list[ToolLike] = [look, pay]
    model = ScriptedModel([calls, "end"])
    agent = Agent("bot", model=model, tools=tools, limits=QUICK)
    events = await told(agent)
    assert texts(results(events)) == ["saw a", "saw b"]
    (question,) = asked(events)
    await resumed(agent, Answer(question.id, payload={"approved": True}))
    assert log == ["paid"]
    assert texts(model.prompts[1].messages)[2:] == ["saw a", "paid", "saw b"]


async def test_a_question_expires_when_the_agent_says_so() -> None:
    @tool(approval=True)
    def pay() -> str:
        return "paid"

    limits = Limits(retry_seconds=0, grace_seconds=0.05, answer_seconds=60)
    clock = StepClock()
    agent = Agent("bot", model=ScriptedModel([[call("pay")]]), tools=[pay], limits=limits, clock=clock)
    (question,) = asked(await told(agent))
    assert question.expires_at is not None
    asked_at = question.expires_at - 60 * 1_000_000_000
    assert 0 < asked_at <= clock.now()
    assert question.expired(question.expires_at)
    assert not question.expired(question.expires_at - 1)


@pytest.mark.requirement("AGT-14")
async def test_a_stop_while_a_resumed_call_runs_answers_it_and_the_run_is_stopped() -> None:
    begun = asyncio.Event()

    @tool(approval=True)
    async def pay() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent("bot", model=ScriptedModel([[call("pay")]]), tools=[pay], limits=QUICK)
    paused = await collect_paused(agent)
    stop = StopSignal()

    async def stop_it() -> None:
        await begun.wait()
        stop.request(EndReason.STOP_REQUESTED)

    stopping = asyncio.create_task(stop_it())
    base = context(*paused[0], stop=stop)
    answer = Answer(paused[1].id, payload={"approved": True})
    run = replace(base, interrupts=[paused[1]], answers={paused[1].id: answer})
    events = [event async for event in bounded(agent.respond(run))]
    await stopping
    (result,) = results(events)
    assert result.is_error
    assert end_of(events).reason is EndReason.STOP_REQUESTED


async def collect_paused(agent: Agent) -> tuple[list[Message], Interrupt]:
    (question,) = asked(await told(agent))
    return agent.messages(), question


async def test_a_run_waits_for_its_answers_before_anything_else_is_said() -> None:
    agent = paying([])
    await told(agent)
    with pytest.raises(Conflict, match="waits for answers"):
        await collect(agent.run("hello?"))
    with pytest.raises(Conflict, match="waits for nothing"):
        await collect(Agent("idle", model=ScriptedModel([])).resume([]))

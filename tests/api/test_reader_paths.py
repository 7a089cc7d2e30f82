"""What only a model reads is on no path to a reader, and on every path to a model."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app.agent.agent import Agent
from app.agent.compaction import Compaction
from app.agent.hooks import AfterTurn
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.summariser import INSTRUCTIONS
from app.agent.tools import ToolContext, tool
from app.conversation.messages import Injected, Message, user_message
from tests.agent.asking import model_at
from tests.agent.recordings import chat as completions
from tests.agent.recordings import messages
from tests.agent.recordings import server_tools as responses
from tests.agent.replay import Recording, provider
from tests.services.chat import Chat, OpenChat, user
from tests.services.sse import SseFrame

HUSH = "hush-hush"
CONTEXT = [{"description": HUSH, "value": f"{HUSH} context"}]


def look(context: ToolContext) -> str:
    context.remind(f"{HUSH} in a result")
    return "seen"


@tool(approval=True)
def pay() -> str:
    return "paid"


def whisper(turn: AfterTurn) -> list[Message]:
    kinds = (Injected.META, Injected.EPHEMERAL)
    return [user_message(f"{HUSH} {kind}", injected=kind, origin=HUSH) for kind in kinds]


async def whispered(open_chat: OpenChat) -> tuple[Chat, list[SseFrame], ScriptedModel]:
    """A thread with context on a user message, a reminder in a result, injected messages, and a pause."""
    calls = [[CallPiece("a", "{}", name="look")], "said", [CallPiece("b", "{}", name="pay")], "done"]
    model = ScriptedModel(calls)
    agent = Agent("assistant", model=model, tools=[look, pay], after_turn=whisper)
    chat = await open_chat(agents=[agent])
    events = await chat.run("t", user("hello", "u1"), run="r1", context=CONTEXT)
    events += await chat.run("t", user("pay", "u2"), run="r2", context=[{"description": "x", "value": HUSH}])
    return chat, events, model


async def replayed(chat: Chat) -> str:
    return (await chat.client.get("/threads/t/runs/r1/events")).text


async def standing(chat: Chat) -> str:
    """The connect sequence: a list with nothing new."""
    return (await chat.post_run(chat.body("t", *await chat.messages("t")))).text


async def forked(chat: Chat) -> str:
    await chat.client.post("/threads/t/fork", json={"threadId": "f"})
    return (await chat.client.get("/threads/f/messages")).text


def getting(path: str) -> Callable[[Chat], Awaitable[str]]:
    async def get(chat: Chat) -> str:
        answer = await chat.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    return get


async def forked_before(chat: Chat) -> str:
    await chat.client.post("/threads/t/fork", json={"threadId": "f", "runId": "r1"})
    return (await chat.client.get("/threads/f/transcript")).text


READERS: dict[str, Callable[[Chat], Awaitable[str]]] = {
    "messages": getting("/threads/t/messages"),
    "messages for 0.x clients": getting("/threads/t/messages?protocol=0"),
    "a page of messages": getting("/threads/t/messages?limit=3"),
    "messages of a run": getting("/threads/t/messages?run_id=r1"),
    "transcript": getting("/threads/t/transcript"),
    "a page of the transcript": getting("/threads/t/transcript?limit=1&before_run_id=r2"),
    "threads": getting("/threads?include_hidden=true"),
    "thread": getting("/threads/t"),
    "runs": getting("/threads/t/runs"),
    "run": getting("/threads/t/runs/r1"),
    "state": getting("/threads/t/state"),
    "replay": replayed,
    "replay for 0.x clients": getting("/threads/t/runs/r1/events?protocol=0"),
    "connect sequence": standing,
    "fork": forked,
    "fork from before": forked_before,
}


@pytest.mark.requirement("MSG-09", "AGT-10", "AGUI-11")
@pytest.mark.parametrize("path", READERS)
async def test_no_path_to_a_reader_holds_what_only_a_model_reads(open_chat: OpenChat, path: str) -> None:
    chat, _, _ = await whispered(open_chat)
    told = await READERS[path](chat)
    assert HUSH not in told
    assert told.strip()


@pytest.mark.requirement("MSG-09", "AGT-08")
async def test_no_live_stream_holds_it_and_neither_does_the_snapshot_at_a_pause(open_chat: OpenChat) -> None:
    _, events, _ = await whispered(open_chat)
    assert "MESSAGES_SNAPSHOT" in [event.type for event in events]
    assert all(HUSH not in str(event.data) for event in events)


@pytest.mark.requirement("MSG-09", "AGT-08", "AGT-10")
@pytest.mark.parametrize("path", ["stream", "runs/r1/events"])
async def test_nobody_who_joins_a_live_run_hears_it(open_chat: OpenChat, path: str) -> None:
    """It joins behind the reminder, the hooks' messages and the text, and hears what came before."""
    proceed = asyncio.Event()
    model = ScriptedModel([[CallPiece("a", "{}", name="look")], ["half", proceed, " done"]])
    agent = Agent("assistant", model=model, tools=[look], after_turn=whisper)
    chat = await open_chat(agents=[agent])
    body = chat.body("t", user("hello", "u1"), run="r1", context=CONTEXT)
    async with chat.streaming(body) as first:
        told = await first.until("TEXT_MESSAGE_CONTENT")
        async with chat.following(f"/threads/t/{path}") as joined:
            told += await joined.until("TEXT_MESSAGE_CONTENT")
            proceed.set()
            told += [*await joined.rest(), *await first.rest()]
    assert [event.type for event in told].count("RUN_FINISHED") == 2
    assert HUSH not in str([event.data for event in told])
    assert HUSH in str(model.prompts)


@pytest.mark.requirement("MSG-09", "AGT-10")
async def test_the_model_reads_all_of_it_where_it_stands(open_chat: OpenChat) -> None:
    _, _, model = await whispered(open_chat)
    second = [message.join_text("|") for message in model.prompts[1].messages]
    assert second == [
        f"hello|{HUSH}: {HUSH} context",
        "",
        f"seen|{HUSH} in a result",
        f"{HUSH} meta",
        f"{HUSH} ephemeral",
    ]
    third = [message.join_text("|") for message in model.prompts[2].messages]
    assert third == [*second[:4], "said", f"{HUSH} meta", f"pay|x: {HUSH}"]


WORDS = (f"{HUSH} context", f"{HUSH} in a result", f"{HUSH} meta")
CALLED = Recording(
    completions.said(
        completions.ROLE,
        completions.call(completions.BASEL, index=0, id="c", name="get_weather"),
        completions.TOOLS,
    )
)
ANSWERED = responses.responded(responses.called(2, 0), output=[responses.CALLED])


def get_weather(city: str, context: ToolContext) -> str:
    """Tells the weather."""
    return f"{look(context)} in {city}"


async def sent(open_chat: OpenChat, spec: str, *recordings: Recording) -> list[str]:
    """The request that follows the tool in the first run, and the one of a second run."""
    async with provider(*recordings) as server, model_at(server.address, spec) as model:
        talk = await open_chat(
            agents=[Agent("assistant", model=model, tools=[get_weather], after_turn=whisper)]
        )
        await talk.run("t", user("hello", "u1"), context=CONTEXT)
        await talk.run("t", user("more", "u2"))
        return [body.decode() for body in server.bodies[1:]]


async def summed_up(open_chat: OpenChat) -> list[str]:
    """What the model is told that is to sum up."""
    replies = [[CallPiece("a", "{}", name="look")], "said " * 100, "in short", "done"]
    model, compaction = ScriptedModel(replies), Compaction(120, keep_tokens=30)
    agent = Agent("assistant", model=model, tools=[look], after_turn=whisper, condense=compaction)
    talk = await open_chat(agents=[agent])
    await talk.run("t", user("hello", "u1"), context=CONTEXT)
    await talk.run("t", user("more", "u2"))
    return [prompt.messages[0].join_text() for prompt in model.prompts if prompt.system == INSTRUCTIONS]


def family(request: str) -> tuple[Agent, ScriptedModel]:
    """An agent that asks another, which has a tool and hooks of its own."""
    model = ScriptedModel([[CallPiece("a", "{}", name="look")], "seen to"])
    bank = Agent("bank", model=model, tools=[look], after_turn=whisper, description="Pays bills.")
    asks = [CallPiece("b", f'{{"request": "{request}"}}', name="bank")]
    return Agent("assistant", model=ScriptedModel([asks, "all paid"]), tools=[bank.as_tool()]), model


async def below(open_chat: OpenChat) -> list[str]:
    """What a sub-agent is shown; what is said to its caller is no part of it."""
    desk, model = family(f"{HUSH} context")
    talk = await open_chat(agents=[desk])
    await talk.run("t", user("hello", "u1"))
    return [str([message.join_text("|") for message in model.prompts[1].messages])]


MODELS: dict[str, Callable[[OpenChat], Awaitable[list[str]]]] = {
    "openai": lambda start: sent(start, "openai:model-a", CALLED, completions.FINE),
    "openai responses": lambda start: sent(
        start, "openai-responses:model-a", ANSWERED, responses.RESPONSE_FINE
    ),
    "anthropic": lambda start: sent(start, "anthropic:claude-a", messages.SIGNED, messages.SUNNY),
    "summariser": summed_up,
    "sub-agent": below,
}


@pytest.mark.requirement("MSG-09", "AGT-09", "AGT-10")
@pytest.mark.parametrize("path", MODELS)
async def test_no_path_to_a_model_loses_what_only_a_model_reads(open_chat: OpenChat, path: str) -> None:
    told = await MODELS[path](open_chat)
    assert told
    for request in told:
        assert [words for words in WORDS if words not in request] == []


@pytest.mark.requirement("MSG-07", "MSG-09")
@pytest.mark.parametrize("path", ["openai", "openai responses", "anthropic"])
async def test_a_provider_is_sent_passing_words_in_their_own_run_alone(
    open_chat: OpenChat, path: str
) -> None:
    within, later = await MODELS[path](open_chat)
    assert f"{HUSH} ephemeral" in within
    assert f"{HUSH} ephemeral" not in later


@pytest.mark.requirement("MSG-09", "AGT-16")
async def test_no_reader_of_a_sub_agents_thread_gets_what_only_its_model_reads(open_chat: OpenChat) -> None:
    desk, _ = family("pay")
    talk = await open_chat(agents=[desk])
    told = str([event.data for event in await talk.run("t", user("hello", "u1"))])
    [child] = [row for row in await talk.threads(include_hidden="true") if row["hidden"]]
    for part in ("", "/messages", "/transcript", "/runs"):
        told += (await talk.client.get(f"/threads/{child['threadId']}{part}")).text
    assert "seen to" in told
    assert HUSH not in told

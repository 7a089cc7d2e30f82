"""A model called with a prompt of the caller's own, outside any run."""

import asyncio
import gc
from contextlib import aclosing

import httpx2
import pytest

from app.agent.direct import CallFailed, generate_text, stream_text
from app.agent.events import MessageDone, TextDelta
from app.agent.models.base import CallPiece, Finished, ModelError, TextPiece, ThinkingPiece
from app.agent.models.providers import ProviderKeys
from app.agent.models.scripted import CUT, Reply, ScriptedModel
from app.agent.prompt import Prompt
from app.conversation.blocks import Text, ToolCall
from app.conversation.messages import StopReason, Usage, assistant_message, user_message
from app.errors import StartupRefused
from tests.agent.asking import KEY, model_at
from tests.agent.recordings import chat
from tests.agent.replay import Recording, provider
from tests.agent.running import PATIENCE, StepClock

pytestmark = pytest.mark.requirement("AGT-21")

PROMPT = Prompt("Be brief.", [user_message("hi")])
HANGS = Recording(chat.said(chat.ROLE, chat.text("half"), done=False), end="hang")


def script(*pieces: Reply) -> ScriptedModel:
    return ScriptedModel(pieces)


async def test_the_prompt_goes_out_as_it_was_built() -> None:
    model = script("yes")
    await generate_text(PROMPT, model)
    assert model.prompts[0] is PROMPT


async def test_the_answer_carries_all_that_its_provider_told_of_it() -> None:
    usage = Usage(input_tokens=3, output_tokens=2, total_tokens=5)
    finished = Finished(StopReason.LENGTH, usage, response_id="r", model="script-2")
    model = script([ThinkingPiece("hm"), TextPiece("a\x00"), TextPiece("b"), finished])
    message = await generate_text(PROMPT, model, clock=StepClock())
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.join_text() == "a\ufffdb"
    assert (message.stop_reason, message.usage) == (StopReason.LENGTH, usage)
    assert (message.provider, message.model, message.response_id) == ("scripted", "script-2", "r")
    assert message.sender_id is None
    assert message.created_at == 2_000_000_000


async def test_the_stream_tells_the_text_in_pieces_and_the_message_last() -> None:
    events = [event async for event in stream_text(PROMPT, script(["one ", "\ud83d", "\ude00"]))]
    *deltas, done = events
    assert isinstance(done, MessageDone)
    assert all(isinstance(delta, TextDelta) and delta.message_id == done.message.id for delta in deltas)
    assert [delta.delta for delta in deltas if isinstance(delta, TextDelta)] == ["one ", "\U0001f600"]
    assert done.message.join_text() == "one \U0001f600"


async def test_calls_are_handed_over_and_not_run() -> None:
    old = assistant_message([ToolCall(id="c", name="t", arguments="{}")])
    model = script([CallPiece("0", "{}", name="t", call_id="c")])
    message = await generate_text(Prompt("", [old]), model)
    assert message.stop_reason is StopReason.TOOL_USE
    (call,) = message.tool_calls()
    assert call.name == "t"
    assert call.id != "c"


async def test_an_answer_of_nothing_still_tells_what_it_cost() -> None:
    usage = Usage(total_tokens=5)
    message = await generate_text(PROMPT, script([Finished(StopReason.STOP, usage)]))
    assert (message.content, message.usage, message.stop_reason) == ((), usage, StopReason.STOP)


@pytest.mark.parametrize(
    ("end", "code", "retryable"),
    [
        (ModelError("The provider is busy.", retryable=True), "model_error", True),
        (ModelError("Too slow.", timeout=True), "model_timeout", False),
        (CUT, "model_error", True),
        (Finished(StopReason.ERROR), "model_error", False),
    ],
)
async def test_a_failure_keeps_what_was_said(end: ModelError, code: str, retryable: bool) -> None:
    with pytest.raises(CallFailed) as caught:
        await generate_text(PROMPT, script(["half a ", "word", end]))
    failed = caught.value
    assert (failed.code, failed.retryable, failed.status) == (code, retryable, 502)
    assert failed.public
    assert failed.partial is not None
    assert failed.partial.stop_reason is StopReason.ERROR
    assert failed.partial.join_text() == "half a word"


async def test_a_failure_before_the_first_word_has_no_partial_message_and_is_not_tried_again() -> None:
    model = script([ModelError("The provider is busy.", retryable=True)], "yes")
    with pytest.raises(CallFailed, match="busy") as caught:
        await generate_text(PROMPT, model)
    assert caught.value.partial is None
    assert len(model.prompts) == 1


async def test_a_fault_in_the_models_code_passes_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        await generate_text(PROMPT, script(["half", ZeroDivisionError()]))


async def test_closing_the_iterator_closes_the_connection() -> None:
    async with provider(HANGS) as server, model_at(server.address, "openai:model-a") as model:
        async with aclosing(stream_text(PROMPT, model)) as events:
            first = await anext(events)
        assert isinstance(first, TextDelta)
        await asyncio.wait_for(server.gone.wait(), PATIENCE)


async def test_cancelling_the_caller_closes_the_connection() -> None:
    async with provider(HANGS) as server, model_at(server.address, "openai:model-a") as model:
        heard = asyncio.Event()

        async def listen() -> None:
            async for _ in stream_text(PROMPT, model):
                heard.set()

        caller = asyncio.create_task(listen())
        await asyncio.wait_for(heard.wait(), PATIENCE)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await asyncio.wait_for(server.gone.wait(), PATIENCE)


async def test_a_model_of_the_callers_stays_open_for_the_next_call() -> None:
    async with provider(chat.FINE) as server, model_at(server.address, "openai:model-a") as model:
        answers = [await generate_text(PROMPT, model) for _ in range(2)]
    assert [answer.join_text() for answer in answers] == ["fine", "fine"]


async def test_a_spec_is_enough_for_a_provider() -> None:
    async with provider(chat.FINE) as server:
        keys = ProviderKeys(openai_api_key=KEY, openai_base_url=f"{server.address}/v1")
        message = await generate_text(PROMPT, "openai:model-a", keys=keys)
    assert message.content == (Text(text="fine"),)
    assert server.requests[0]["messages"][0] == {"role": "system", "content": "Be brief."}


def open_clients() -> set[int]:
    """The HTTP clients of models that somebody still has to close."""
    found = (item for item in gc.get_objects() if isinstance(item, httpx2.AsyncClient))
    return {id(client) for client in found if not client.is_closed}


async def test_what_was_opened_for_a_spec_is_closed() -> None:
    async with provider(HANGS) as server:
        keys = ProviderKeys(openai_api_key=KEY, openai_base_url=f"{server.address}/v1")
        gc.collect()
        before = open_clients()
        async with aclosing(stream_text(PROMPT, "openai:model-a", keys=keys)) as events:
            await anext(events)
            opened = open_clients() - before
        assert opened
        assert not opened & open_clients()
        await asyncio.wait_for(server.gone.wait(), PATIENCE)


async def test_the_demo_model_answers_too() -> None:
    assert (await generate_text(PROMPT, "demo")).join_text()


async def test_a_spec_that_names_no_model_is_refused() -> None:
    with pytest.raises(StartupRefused):
        await generate_text(PROMPT, "nonsense")

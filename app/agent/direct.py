"""One call to a model with a prompt of the caller's own, outside any run.

The prompt goes out exactly as it was built: nothing is paired, attributed or stored, and a call that fails
is not made again. Text comes scrubbed and parts assembled, as in a run. Tool calls are handed to the
caller and not run. There is no time limit; `asyncio.timeout` around the call is one.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from app.agent.events import AgentEvent, MessageDone
from app.agent.limits import Limits
from app.agent.models.base import Model, ModelError
from app.agent.models.providers import ProviderKeys, close_model, make_model
from app.agent.prompt import Prompt
from app.agent.response import Response
from app.agent.strays import Strays
from app.agent.stream import ModelStream
from app.clock import Clock, SystemClock
from app.conversation.messages import Message, StopReason, assistant_message
from app.conversation.outcomes import EndReason, error_of
from app.errors import AppError

_CUT = "The connection to the model was lost before its answer was complete."


class CallFailed(AppError):
    """The model failed, or its answer was cut.

    `code` is `model_error` or `model_timeout`; `retryable` tells whether the same call may succeed later.
    `partial` is what the model had said by then, with the stop reason `error`; None if that was nothing.
    """

    code = EndReason.MODEL_ERROR.value
    status = 502

    def __init__(self, error: ModelError, partial: Message | None) -> None:
        super().__init__(error.public)
        self.code = (EndReason.MODEL_TIMEOUT if error.timeout else EndReason.MODEL_ERROR).value
        self.retryable = error.retryable
        self.partial = partial


async def stream_text(
    prompt: Prompt, model: Model | str, *, keys: ProviderKeys | None = None, clock: Clock | None = None
) -> AsyncGenerator[AgentEvent, None]:
    """The answer as it grows: deltas of its parts, and `MessageDone` with the whole message last.

    `model` is one that the caller keeps, or a spec as `make_model` takes it, with the `keys` it needs; what
    was opened for a spec is closed at the end. The message has the stop reason and usage that the provider
    told, and no sender. One that says nothing has no content. Closing the iterator, or cancelling who waits
    for it, closes the connection to the provider.

    CallFailed for every failure of the provider's; StartupRefused for a spec of which no model can be made.
    An exception that is no ModelError is a fault in the model's code and passes as it is.
    """
    response = Response(clock or SystemClock(), _taken(prompt))
    async with _opened(model, keys) as opened:
        failure: ModelError | None = None
        try:
            async with aclosing(_listen(prompt, opened, response)) as telling:
                async for event in telling:
                    yield event
        except ModelError as error:
            failure = error
        for event in response.close():
            yield event
        if failure is None and response.stop_reason() in (StopReason.ERROR, StopReason.ABORTED):
            failure = ModelError(_public(EndReason.MODEL_ERROR))
        if failure is not None:
            raise CallFailed(failure, response.message(StopReason.ERROR, opened)) from failure
        reason = response.stop_reason()
        message = response.message(reason, opened) or _silence(response, reason, opened, clock)
    yield MessageDone(message, last=True)


async def generate_text(
    prompt: Prompt, model: Model | str, *, keys: ProviderKeys | None = None, clock: Clock | None = None
) -> Message:
    """The whole answer. All else is as with `stream_text`."""
    async with aclosing(stream_text(prompt, model, keys=keys, clock=clock)) as events:
        async for event in events:
            if isinstance(event, MessageDone):
                return event.message
    raise AssertionError("a stream ends with its message or with an error")


async def _listen(prompt: Prompt, model: Model, response: Response) -> AsyncGenerator[AgentEvent, None]:
    async with ModelStream(model, prompt, Limits().grace_seconds, Strays()) as stream:
        while True:
            if not stream.ready:
                await stream.news()
            pieces = stream.take()
            if not pieces:
                break
            for piece in pieces:
                for event in response.take(piece):
                    yield event
    if response.finished is None:
        raise ModelError(_CUT, retryable=True)


@asynccontextmanager
async def _opened(model: Model | str, keys: ProviderKeys | None) -> AsyncGenerator[Model, None]:
    """The model itself, which stays its owner's, or one made for this call alone."""
    if not isinstance(model, str):
        yield model
        return
    made = make_model(model, keys)
    try:
        yield made
    finally:
        await close_model(made)


def _taken(prompt: Prompt) -> set[str]:
    return {call.id for message in prompt.messages for call in message.tool_calls()}


def _silence(response: Response, reason: StopReason, model: Model, clock: Clock | None) -> Message:
    """The message of a model that said nothing at all, for what it cost is worth knowing."""
    finished = response.finished
    return assistant_message(
        (),
        id=response.message_id,
        clock=clock,
        provider=model.provider,
        model=(finished.model if finished else None) or model.name,
        response_id=finished.response_id if finished else None,
        usage=finished.usage if finished else None,
        stop_reason=reason,
    )


def _public(reason: EndReason) -> str:
    error = error_of(reason)
    assert error is not None
    return error.message

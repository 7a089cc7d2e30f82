"""Models of real providers, through pydantic-ai's direct requests. The library is imported when one is
made, and not before: it is large, and the demo model does without."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.agent.models.base import Model, ModelEvent
from app.agent.models.demo import DemoModel
from app.agent.prompt import Prompt
from app.errors import StartupRefused

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.models import StreamedResponse

_NO_KEY = "api-key-not-set"
_MOST_PAUSES = 16
"""How often a provider may break off one answer to be asked to go on with it."""


@dataclass(frozen=True, slots=True)
class ProviderKeys:
    """Credentials and addresses, as the providers' usual variables hold them."""

    openai_api_key: str | None = field(default=None, repr=False)
    openai_base_url: str | None = None
    anthropic_api_key: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None


class ProviderModel:
    """A model behind a provider's API. Close it with `aclose` when nothing uses it any more."""

    def __init__(
        self, model: LibraryModel, http: httpx2.AsyncClient, server_tools: Sequence[str] = ()
    ) -> None:
        from app.agent.models import server_tools as known

        self._model = model
        self._http = http
        self._server_tools = known.server_tools(model, server_tools)

    @property
    def provider(self) -> str:
        return self._model.system

    @property
    def name(self) -> str:
        return self._model.model_name

    @property
    def inputs(self) -> frozenset[str]:
        """What the library would send for this model, of `image`, `audio`, `video`, `document`."""
        profile = self._model.profile
        taken = {
            "image": profile.get("supports_image_input", True),
            "audio": profile.get("supports_audio_file_input", True),
            "video": profile.get("supports_video_input", True),
            "document": profile.get("supports_document_input", True),
        }
        return frozenset(kind for kind, takes in taken.items() if takes)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        """One request. ModelError for every failure of the provider's."""
        from app.agent.models.provider_errors import explained
        from app.agent.models.provider_events import Answer
        from app.agent.models.provider_messages import request_messages

        answer = Answer()
        history = request_messages(prompt.messages)
        try:
            for _ in range(_MOST_PAUSES):
                async with self._request(prompt, history) as response:
                    async for event in answer.pieces(response):
                        yield event
                if not answer.paused:
                    break
                history = [*history, response.get()]
        except Exception as error:
            failure = explained(error, self.provider)
            if failure is None:
                raise
            raise failure from error

    def _request(
        self, prompt: Prompt, history: Sequence[ModelMessage]
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        from pydantic_ai.direct import model_request_stream

        from app.agent.models.provider_parameters import request_parameters, request_settings

        return model_request_stream(
            self._model,
            history,
            model_settings=request_settings(prompt, self.provider),
            model_request_parameters=request_parameters(prompt, self._model.profile, self._server_tools),
            instrument=False,
        )

    async def aclose(self) -> None:
        """Closes the connections to the provider. Closing twice is harmless."""
        async with self._model:  # leaving it closes what the library opened by itself
            pass
        await self._http.aclose()


def make_model(spec: str, keys: ProviderKeys | None = None, *, server_tools: Sequence[str] = ()) -> Model:
    """The model that `spec` names: `demo`, or `<prefix>:<name>`.

    `openai:` is chat completions here, with any server that speaks it; `openai-responses:` the Responses
    API; `anthropic:` the Messages API; every other prefix is the library's own. `server_tools` are those that
    the provider is to run itself, of `web_search`, `web_fetch` and `code_execution`. StartupRefused, naming
    MODEL, for what cannot be made.
    """
    if spec == "demo":
        if server_tools:
            raise StartupRefused("The demo model has no server tools.")
        return DemoModel()
    prefix, colon, name = spec.partition(":")
    if not colon or not prefix or not name:
        raise StartupRefused(
            f"VERBATIM_MODEL: {spec} is neither demo nor of the form provider:name, such as openai:gpt-5."
        )
    from app.agent.models.repair import repairing_client

    http = repairing_client()
    return ProviderModel(_library_model(prefix, name, keys or ProviderKeys(), http), http, server_tools)


async def close_model(model: Model) -> None:
    """Closes what `make_model` opened. Harmless for a model that holds nothing, and a second time."""
    if isinstance(model, ProviderModel):
        await model.aclose()


def _library_model(prefix: str, name: str, keys: ProviderKeys, http: httpx2.AsyncClient) -> LibraryModel:
    if prefix in ("openai", "openai-chat", "openai-responses"):
        return _openai(prefix, name, keys, http)
    if prefix == "anthropic":
        return _anthropic(name, keys, http)
    from app.agent.models.prefixes import library_model

    return library_model(prefix, name, http)


def _openai(prefix: str, name: str, keys: ProviderKeys, http: httpx2.AsyncClient) -> LibraryModel:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    if not keys.openai_api_key and not keys.openai_base_url:
        raise StartupRefused(
            f"VERBATIM_MODEL: {prefix}:{name} needs OPENAI_API_KEY, or OPENAI_BASE_URL for another server."
        )
    client = AsyncOpenAI(
        api_key=keys.openai_api_key or _NO_KEY,
        base_url=keys.openai_base_url or "https://api.openai.com/v1",
        http_client=http,
        max_retries=0,
    )
    provider = OpenAIProvider(openai_client=client)
    if prefix == "openai-responses":
        return OpenAIResponsesModel(name, provider=provider)
    return OpenAIChatModel(name, provider=provider)


def _anthropic(name: str, keys: ProviderKeys, http: httpx2.AsyncClient) -> LibraryModel:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    if not keys.anthropic_api_key and not keys.anthropic_base_url:
        raise StartupRefused(f"VERBATIM_MODEL: anthropic:{name} needs ANTHROPIC_API_KEY.")
    client = AsyncAnthropic(
        api_key=keys.anthropic_api_key or _NO_KEY,
        base_url=keys.anthropic_base_url or "https://api.anthropic.com",
        http_client=http,
        max_retries=0,
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))

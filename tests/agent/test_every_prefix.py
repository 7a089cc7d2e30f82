"""Every prefix of the provider library makes a model that sends a request, or is refused by what it lacks."""

import inspect
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import httpx2
import pydantic_ai.providers
import pytest
from pydantic_ai._warnings import PydanticAIDeprecationWarning

from app.agent.models import repair
from app.agent.models.base import ModelError
from app.agent.models.providers import ProviderModel, close_model, make_model
from app.agent.prompt import Prompt
from app.conversation.messages import user_message
from app.errors import StartupRefused
from tests.agent.recordings import chat, messages
from tests.agent.recordings import server_tools as responses
from tests.agent.replay import Provider, Recording, provider

pytestmark = pytest.mark.requirement("INT-01")


@dataclass(frozen=True, slots=True)
class Reached:
    """A provider that is reached with these variables set; `URL` in one is the address of the recording."""

    variables: dict[str, str]
    host: str
    path: str = "/v1/chat/completions"
    model: str = "model-a"
    recording: Recording = chat.FINE
    text: str = "fine"


def keyed(variable: str, host: str, path: str = "/v1/chat/completions", model: str = "model-a") -> Reached:
    return Reached({variable: "a-key"}, host, path, model)


def responding(variables: dict[str, str], host: str, path: str, model: str = "model-a") -> Reached:
    return Reached(variables, host, path, model, responses.RESPONSE_FINE, "Sunny.")


AZURE = {
    "AZURE_OPENAI_ENDPOINT": "https://a.example.test",
    "AZURE_OPENAI_API_KEY": "a-key",
    "OPENAI_API_VERSION": "2025-01-01",
}
GATEWAY = {"PYDANTIC_AI_GATEWAY_API_KEY": f"pylf_v1_us_{'a' * 40}"}
SNOWFLAKE = {"SNOWFLAKE_ACCOUNT": "acc", "SNOWFLAKE_TOKEN": "a-key"}
MANTLE = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_BEARER_TOKEN_BEDROCK": "a-key"}
REACHED: dict[str, Reached] = {
    "alibaba": keyed(
        "ALIBABA_API_KEY", "dashscope-intl.aliyuncs.com", "/compatible-mode/v1/chat/completions"
    ),
    "azure": Reached(AZURE, "a.example.test", "/openai/deployments/model-a/chat/completions"),
    "azure-responses": responding(AZURE, "a.example.test", "/openai/responses"),
    "bedrock-mantle": responding(
        MANTLE, "bedrock-mantle.us-east-1.api.aws", "/v1/responses", "openai.gpt-oss-120b"
    ),
    "cerebras": keyed("CEREBRAS_API_KEY", "api.cerebras.ai"),
    "crusoe": keyed("CRUSOE_API_KEY", "api.inference.crusoecloud.com", model="meta/model-a"),
    "deepseek": keyed("DEEPSEEK_API_KEY", "api.deepseek.com", "/chat/completions"),
    "fireworks": keyed("FIREWORKS_API_KEY", "api.fireworks.ai", "/inference/v1/chat/completions"),
    "gateway/anthropic": Reached(
        GATEWAY,
        "gateway-us.pydantic.dev",
        "/proxy/anthropic/v1/messages",
        recording=messages.SUNNY,
        text="Sunny.",
    ),
    "gateway/openai": responding(GATEWAY, "gateway-us.pydantic.dev", "/proxy/openai/responses"),
    "github": keyed("GITHUB_API_KEY", "models.github.ai", "/inference/chat/completions"),
    "github-copilot": keyed("GITHUB_COPILOT_API_KEY", "api.githubcopilot.com", "/chat/completions"),
    "groq": Reached({"GROQ_API_KEY": "a-key", "GROQ_BASE_URL": "URL"}, "", "/openai/v1/chat/completions"),
    "heroku": keyed("HEROKU_INFERENCE_KEY", "us.inference.heroku.com"),
    "litellm": keyed("LITELLM_API_KEY", "api.openai.com"),
    "meta": responding({"META_API_KEY": "a-key"}, "api.meta.ai", "/v1/responses"),
    "mistral": keyed("MISTRAL_API_KEY", "api.mistral.ai"),
    "moonshotai": keyed("MOONSHOTAI_API_KEY", "api.moonshot.ai"),
    "nebius": keyed("NEBIUS_API_KEY", "api.studio.nebius.com"),
    "ollama": Reached({"OLLAMA_BASE_URL": "https://o.example.test/v1"}, "o.example.test"),
    "openrouter": keyed("OPENROUTER_API_KEY", "openrouter.ai", "/api/v1/chat/completions", "some/model-a"),
    "ovhcloud": keyed("OVHCLOUD_API_KEY", "oai.endpoints.kepler.ai.cloud.ovh.net"),
    "sambanova": keyed("SAMBANOVA_API_KEY", "api.sambanova.ai"),
    "snowflake": Reached(SNOWFLAKE, "acc.snowflakecomputing.com", "/api/v2/cortex/v1/chat/completions"),
    "together": keyed("TOGETHER_API_KEY", "api.together.xyz"),
    "vercel": keyed("VERCEL_AI_GATEWAY_API_KEY", "ai-gateway.vercel.sh"),
    "vllm": Reached({"VLLM_BASE_URL": "https://v.example.test/v1"}, "v.example.test"),
    "zai": keyed("ZAI_API_KEY", "api.z.ai", "/api/paas/v4/chat/completions"),
}
EXTRAS = {
    "bedrock": ("boto3", "bedrock"),
    "cohere": ("cohere", "cohere"),
    "gateway/groq": ("groq", "groq"),
    "google": ("google.genai", "google"),
    "google-cloud": ("google.genai", "google"),
    "google-decisions": ("google.genai", "google"),
    "groq": ("groq", "groq"),
    "huggingface": ("huggingface_hub", "huggingface"),
    "mistral": ("mistralai", "mistral"),
    "typesafe": ("typesafe_sdk", "typesafe"),
    "xai": ("xai_sdk", "xai"),
}
NOT_MADE = {
    "elevenlabs": {"ELEVENLABS_API_KEY": "a-key"},
    "openai-chatgpt": {},
    "openai-codex": {"CODEX_HOME": "/nowhere"},
    "sentence-transformers": {},
    "voyageai": {},
}
"""Providers of voices and embeddings, and accounts that a person signs in to."""
NO_CONVERSATION = {
    "openai-decisions": {"OPENAI_API_KEY": "a-key"},
    "system-one": {"SYSTEM_ONE_BASE_URL": "https://s.example.test", "SYSTEM_ONE_API_KEY": "a-key"},
}
"""Models that decide and do not talk."""
OUR_OWN = {"anthropic", "openai", "openai-chat", "openai-responses"}
RETIRED = {"github"}

Redirect = Callable[[Provider], list[str]]


@pytest.fixture
def redirected(monkeypatch: pytest.MonkeyPatch) -> Redirect:
    """Sends what goes to any host to one recording; gives the list of the hosts that were meant."""

    def point_at(server: Provider) -> list[str]:
        meant: list[str] = []
        made = repair.repairing_client

        async def to_the_recording(request: httpx2.Request) -> None:
            meant.append(request.url.host)
            port = int(server.address.rpartition(":")[2])
            request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=port)

        def client() -> httpx2.AsyncClient:
            ours = made()
            hooks = ours.event_hooks
            ours.event_hooks = {**hooks, "request": [*hooks["request"], to_the_recording]}
            return ours

        monkeypatch.setattr(repair, "repairing_client", client)
        return meant

    return point_at


def set_up(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], address: str = "") -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, address if value == "URL" else value)


async def text_from(model: ProviderModel) -> str:
    pieces = [piece async for piece in model.stream(Prompt("Be good.", [user_message("hi")]))]
    return "".join(getattr(piece, "text", "") for piece in pieces)


@pytest.mark.parametrize("prefix", REACHED)
async def test_one_request_goes_out_and_its_answer_is_read(
    prefix: str, redirected: Redirect, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = REACHED[prefix]
    warned = pytest.warns(PydanticAIDeprecationWarning) if prefix in RETIRED else nullcontext()
    async with provider(case.recording) as server:
        set_up(monkeypatch, case.variables, server.address)
        meant = redirected(server)
        with warned:
            model = make_model(f"{prefix}:{case.model}")
        assert isinstance(model, ProviderModel)
        try:
            assert await text_from(model) == case.text
        finally:
            await model.aclose()
    assert meant == ([case.host] if case.host else [])
    assert [path.partition("?")[0] for path in server.paths] == [case.path]
    assert "hi" in server.bodies[0].decode()
    assert "Be good." in server.bodies[0].decode()


@pytest.mark.parametrize("prefix", EXTRAS)
def test_a_provider_whose_library_is_not_there_names_the_extra(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, extra = EXTRAS[prefix]
    set_up(monkeypatch, GATEWAY)
    for name in list(sys.modules):
        if re.match(rf"pydantic_ai\.(providers|models)\.({extra}|google|google_cloud)\b", name):
            monkeypatch.delitem(sys.modules, name)
        elif re.match(rf"{re.escape(package)}\b", name):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StartupRefused, match=rf"MODEL.*{prefix}.*pydantic-ai-slim\[{extra}\]"):
        make_model(f"{prefix}:model-a")


@pytest.mark.parametrize("prefix", NOT_MADE)
def test_what_is_no_model_to_talk_to_is_refused_at_the_start(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch, NOT_MADE[prefix])
    with pytest.raises(StartupRefused, match=f"MODEL: {prefix}:model-a cannot be used"):
        make_model(f"{prefix}:model-a")


@pytest.mark.parametrize("prefix", NO_CONVERSATION)
async def test_a_model_that_does_not_talk_says_so_and_sends_nothing(
    prefix: str, redirected: Redirect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with provider(chat.FINE) as server:
        set_up(monkeypatch, NO_CONVERSATION[prefix])
        redirected(server)
        model = make_model(f"{prefix}:model-a")
        assert isinstance(model, ProviderModel)
        try:
            with pytest.raises(ModelError, match="cannot be sent this conversation"):
                await text_from(model)
        finally:
            await close_model(model)
    assert server.bodies == []


def test_no_prefix_of_the_library_is_forgotten() -> None:
    source = inspect.getsource(pydantic_ai.providers.infer_provider_class)
    known = {name for line in re.findall(r"case (.+):", source) for name in re.findall(r"'([^']+)'", line)}
    told = {*REACHED, *EXTRAS, *NOT_MADE, *NO_CONVERSATION, *OUR_OWN}
    assert known <= told
    assert {name for name in told - known if not name.startswith("gateway/")} == set()

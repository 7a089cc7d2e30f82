"""MODEL=provider:name."""

import pytest

from app.agent.models.demo import DemoModel
from app.agent.models.providers import ProviderKeys, ProviderModel, close_model, make_model
from app.errors import StartupRefused
from tests.agent.asking import agent_on, model_at
from tests.agent.recordings import chat
from tests.agent.replay import provider
from tests.agent.running import bounded


def test_the_demo_model_needs_nothing() -> None:
    assert isinstance(make_model("demo", ProviderKeys()), DemoModel)


@pytest.mark.parametrize(
    "spec",
    ["", "gpt-5", "openai", "openai:", ":gpt-5", "nosuch:thing", "openai:gpt-5", "anthropic:claude-a"],
)
def test_what_cannot_be_made_is_refused_by_the_settings_name(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StartupRefused, match="MODEL"):
        make_model(spec, ProviderKeys())


def test_keys_are_shown_nowhere() -> None:
    assert "sk-1" not in repr(ProviderKeys(openai_api_key="sk-1", anthropic_api_key="sk-1"))


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("openai:gpt-5", "/v1/chat/completions"),
        ("openai-chat:gpt-5", "/v1/chat/completions"),
        ("openai-responses:gpt-5", "/v1/responses"),
        ("anthropic:claude-a", "/v1/messages"),
    ],
)
async def test_each_prefix_speaks_its_own_protocol(spec: str, path: str) -> None:
    async with provider(chat.FINE) as server, model_at(server.address, spec) as model:
        assert model.name == spec.partition(":")[2]
        async for _ in bounded(agent_on(model).run("hi")):
            pass
    assert server.paths[0].partition("?")[0] == path


async def test_another_prefix_is_the_librarys_own_and_its_streams_are_mended_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with provider(chat.COMMENTS) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", f"{server.address}/v1")
        model = make_model("ollama:llama-a", ProviderKeys())
        assert isinstance(model, ProviderModel)
        try:
            final = await agent_on(model).ask("hi")
        finally:
            await model.aclose()
    assert final is not None
    assert final.join_text() == "fine"
    assert final.provider == "ollama"
    assert server.paths == ["/v1/chat/completions"]


async def test_closing_twice_is_harmless() -> None:
    async with model_at("http://127.0.0.1:9", "openai:x") as model:
        await close_model(model)
    await close_model(DemoModel())

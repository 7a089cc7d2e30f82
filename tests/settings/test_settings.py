"""Settings come from the environment and `.env`, and a wrong one is refused by name."""

from pathlib import Path

import pytest

from app.errors import StartupRefused
from app.settings import PREFIX, Settings, is_loopback, read_settings

pytestmark = pytest.mark.requirement("OPS-02")
EXAMPLE = Path(__file__).parents[2] / ".env.example"
NOWHERE = Path("/nonexistent/.env")


def test_without_anything_the_defaults_hold() -> None:
    assert read_settings({}, NOWHERE) == Settings()


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("VERBATIM_PORT=9001\nVERBATIM_MODEL=openai:small\nOPENAI_API_KEY=from-file\n")
    settings = read_settings({"VERBATIM_PORT": "9002"}, file)
    assert (settings.port, settings.model) == (9002, "openai:small")
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "from-file"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VERBATIM_PORT", "eighty"),
        ("VERBATIM_PORT", "70000"),
        ("VERBATIM_LOG_LEVEL", "loud"),
        ("VERBATIM_ALLOW_UNAUTHENTICATED", "perhaps"),
        ("VERBATIM_CORS_ORIGINS", "*"),
        ("VERBATIM_CORS_ORIGINS", "example.com"),
        ("VERBATIM_LOG_RETENTION_SECONDS", "-1"),
        ("VERBATIM_LOG_MAX_BYTES", "1e9"),
        ("VERBATIM_POTR", "8000"),
        ("VERBATIM_OPENAI_API_KEY", "k"),
    ],
)
def test_a_wrong_or_unknown_setting_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(StartupRefused, match=name):
        read_settings({name: value}, NOWHERE)


def test_a_refusal_never_repeats_a_secret() -> None:
    with pytest.raises(StartupRefused) as refusal:
        read_settings({"VERBATIM_OPENAI_API_KEY": "sk-secret", "VERBATIM_PORT": "x"}, NOWHERE)
    assert "sk-secret" not in refusal.value.public
    settings = read_settings(
        {"OPENAI_API_KEY": "sk-secret", "VERBATIM_DATABASE_URL": "postgresql://u:pw@h/d"}, NOWHERE
    )
    assert "sk-secret" not in repr(settings)
    assert "pw@h" not in repr(settings)


@pytest.mark.requirement("OPS-02")
def test_a_host_on_the_network_is_refused_unless_that_is_wished() -> None:
    with pytest.raises(StartupRefused, match=r"VERBATIM_HOST.*VERBATIM_ALLOW_UNAUTHENTICATED"):
        read_settings({"VERBATIM_HOST": "0.0.0.0"}, NOWHERE)
    open_on_purpose = {"VERBATIM_HOST": "0.0.0.0", "VERBATIM_ALLOW_UNAUTHENTICATED": "true"}
    assert read_settings(open_on_purpose, NOWHERE).host == "0.0.0.0"


def test_the_example_lists_every_setting_with_its_default() -> None:
    lines = [line for line in EXAMPLE.read_text().splitlines() if line and not line.startswith("#")]
    listed = dict(line.split("=", 1) for line in lines)
    ours = {name[len(PREFIX) :].lower() for name in listed if name.startswith(PREFIX)}
    theirs = {name.lower() for name in listed if not name.startswith(PREFIX)}
    assert ours | theirs == set(Settings.model_fields)
    assert read_settings(listed, NOWHERE) == Settings()


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("", False),
    ],
)
def test_loopback_means_this_machine_alone(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback

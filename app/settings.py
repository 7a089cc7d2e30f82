"""One frozen Settings, read once from the environment and `.env`.

Our own variables carry the prefix `VERBATIM_`; the documents name them without it. Providers' keys and base
URLs keep their usual names. What is wrong, or unknown with our prefix, is refused by name.
"""

import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from dotenv import dotenv_values
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from app.errors import StartupRefused

PREFIX = "VERBATIM_"
_ORIGIN = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?", re.ASCII)
_PROVIDER_NAMES = ("openai_api_key", "openai_base_url", "anthropic_api_key", "anthropic_base_url")


class Settings(BaseModel):
    """All settings with their defaults. Sizes are bytes, times are seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    data_dir: Path = Path("data")
    database_url: str = Field(default="", repr=False)
    allow_unauthenticated: bool = False
    model: str = "demo"
    agents: str = ""
    instructions: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    cors_origins: tuple[str, ...] = ()
    log_retention_seconds: Annotated[float, Field(ge=0, le=86_400)] = 300
    log_max_bytes: Annotated[int, Field(ge=0)] = 256 * 1024 * 1024
    openai_api_key: SecretStr | None = None
    openai_base_url: str | None = None
    anthropic_api_key: SecretStr | None = None
    anthropic_base_url: str | None = None

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("log_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            if _ORIGIN.fullmatch(address) is None:
                raise ValueError("each origin is scheme://host[:port], without a path or wildcard")
        return value

    @model_validator(mode="after")
    def _open_only_on_purpose(self) -> Self:
        if not self.allow_unauthenticated and not is_loopback(self.host):
            raise ValueError(
                f"{PREFIX}HOST={self.host} would let everyone on the network in, for no credentials are "
                f"configured. Keep it on loopback, or set {PREFIX}ALLOW_UNAUTHENTICATED=true if something "
                "in front of it authenticates."
            )
        return self


def is_loopback(host: str) -> bool:
    """Whether a host name or address, in brackets or not, means this machine alone."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def read_settings(environ: Mapping[str, str] | None = None, env_file: Path = Path(".env")) -> Settings:
    """Settings from `environ` (the process's own if None) over those of `env_file`.

    Names of others in the file are put into the process's environment where they are not set, for the
    libraries that look there. StartupRefused names every variable that is wrong or unknown.
    """
    from_file = {name: value for name, value in dotenv_values(env_file).items() if value is not None}
    if environ is None:
        for name, value in from_file.items():
            if not name.startswith(PREFIX):
                os.environ.setdefault(name, value)
        environ = os.environ
    merged = {**from_file, **environ}
    values = {
        name[len(PREFIX) :].lower(): value
        for name, value in merged.items()
        if name.startswith(PREFIX) and value
    }
    for name in _PROVIDER_NAMES:
        if name in values:
            raise StartupRefused(f"{PREFIX}{name.upper()} is not a setting; its name is {name.upper()}.")
        if merged.get(name.upper()):
            values[name] = merged[name.upper()]
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise StartupRefused("\n".join(_complaint(detail) for detail in error.errors())) from None


def _complaint(detail: ErrorDetails) -> str:
    if not detail["loc"]:
        return detail["msg"].removeprefix("Value error, ")
    name = str(detail["loc"][0])
    variable = name.upper() if name in _PROVIDER_NAMES else PREFIX + name.upper()
    if detail["type"] == "extra_forbidden":
        return f"{variable} is not a setting; .env.example lists those there are."
    return f"{variable}: {detail['msg'].removeprefix('Value error, ')}"

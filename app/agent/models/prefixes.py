"""Models of the providers that we have no settings of our own for, by the provider library's prefixes."""

from typing import Any, cast

import httpx2
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, gateway, infer_provider, infer_provider_class

from app.errors import StartupRefused

_GATEWAY = "gateway/"
_OTHER_CLIENTS = frozenset({"bedrock", "cohere", "converse", "groq", "huggingface", "xai"})
"""Providers whose libraries speak with a client of their own, or of the older httpx. Their streams are not
mended."""


def library_model(prefix: str, name: str, http: httpx2.AsyncClient) -> Model:
    """The library's model of that prefix, on our client where its provider takes one. Its key and address
    come from the variables that the library names. StartupRefused, with what it lacks, if it cannot be made;
    a provider whose own library is not installed names the extra."""

    def provider_of(provider_name: str) -> Provider[Any]:
        upstream = provider_name.removeprefix(_GATEWAY)
        if upstream in _OTHER_CLIENTS:
            return infer_provider(provider_name)
        if upstream != provider_name:
            return cast(Any, gateway).gateway_provider(upstream, http_client=http)
        kind: Any = infer_provider_class(provider_name)
        return kind(http_client=http)

    try:
        return infer_model(f"{prefix}:{name}", provider_of)
    except Exception as error:
        # Each provider's library has exceptions of its own for credentials and addresses that are missing.
        raise StartupRefused(f"VERBATIM_MODEL: {prefix}:{name} cannot be used: {error}") from error

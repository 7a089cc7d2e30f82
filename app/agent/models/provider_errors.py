"""What went wrong at a provider, in a sentence that anyone may read.

The sentence is made of our own words and a number: exceptions carry addresses, keys and whole requests.
"""

import httpx2
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)

from app.agent.models.base import ModelError
from app.agent.models.sse import CUT

_KINDS: tuple[tuple[type[Exception], str, bool], ...] = (
    (ModelTimeoutError, "did not answer in time", True),
    (ModelConnectionError, "cannot be reached, or the connection to it was lost", True),
    (httpx2.TransportError, "cannot be reached, or the connection to it was lost", True),
    (ModelQuotaExceededError, "reports that the account's quota is used up", False),
    (ModelRateLimitError, "limits the rate of requests; try again later", True),
    (ModelOverloadedError, "is overloaded; try again later", True),
    (ModelUnavailableError, "is unavailable; try again later", True),
    (ModelServerError, "had an error of its own", True),
    (ModelContextWindowExceededError, "says that the conversation is too long for this model", False),
    (ModelAuthenticationError, "refused the server's credentials", False),
    (ModelNotFoundError, "does not know this model", False),
    (ModelRequestRejectedError, "refused the request", False),
    (ModelAPIError, "reported an error", False),
    (UserError, "cannot be sent this conversation", False),
    (NotImplementedError, "cannot be sent this conversation", False),
    (AgentRunError, "answered with something that cannot be read", True),
)


def explained(error: Exception, provider: str) -> ModelError | None:
    """The failure as ours; None if it is not one of the provider's."""
    if isinstance(error, ModelAPIError) and CUT in (error.provider_error_code, error.provider_error_type):
        return ModelError(f"The provider {provider} ended its answer in the middle.", retryable=True)
    for kind, words, retryable in _KINDS:
        if isinstance(error, kind):
            status = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""
            return ModelError(
                f"The provider {provider} {words}{status}.",
                retryable=retryable,
                timeout=isinstance(error, ModelTimeoutError),
            )
    return None

"""How far one run may go."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run. Times are in seconds; what is None is not bounded.

    `turns` counts model calls. `model_idle_seconds` is how long a model may stay silent while it is waited
    for, `tool_seconds` the time of a tool that names none itself, `answer_seconds` how long a person may take
    to answer a question. `tokens` is the sum of all tokens that the providers reported. A model call that
    fails before its first token is tried again `retries` times, after `retry_seconds`, twice that, and so on.
    `grace_seconds` is what a cancelled tool or model gets to end by itself; it is then left alone.
    """

    turns: int = 50
    run_seconds: float | None = 3600
    model_idle_seconds: float | None = 120
    tool_seconds: float | None = 60
    tokens: int | None = None
    retries: int = 2
    retry_seconds: float = 0.5
    grace_seconds: float = 0.5
    answer_seconds: float | None = None

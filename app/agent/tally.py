"""What the models of one run cost."""

from app.conversation.messages import Usage

Cost = tuple[str | None, str | None, Usage]


class Tally:
    """Tokens as the providers reported them, by provider and model."""

    def __init__(self) -> None:
        self._usage: dict[tuple[str | None, str | None], Usage] = {}

    def add(self, provider: str | None, model: str | None, usage: Usage | None) -> None:
        if usage is not None:
            key = (provider, model)
            self._usage[key] = self._usage[key] + usage if key in self._usage else usage

    def total(self) -> Usage:
        """The sum over all of them."""
        return sum(self._usage.values(), Usage())

    def tokens(self) -> int:
        """All tokens; where a provider gave no sum, those of prompt and answer."""
        return sum(
            usage.total_tokens or (usage.input_tokens or 0) + (usage.output_tokens or 0)
            for usage in self._usage.values()
        )

    def costs(self) -> tuple[Cost, ...]:
        return tuple((provider, model, usage) for (provider, model), usage in self._usage.items())

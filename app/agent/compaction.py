"""Compaction: when a prompt grows too long, a summary of its older part is appended and stands for that part.

Two moves and never a rewrite: the summary is one more message of the history, and the prompt is a view of it.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from app.agent.condensing import Means, NotSummarised, Plan
from app.agent.models.base import Model
from app.agent.summaries import newest_summary, projected, summary_message
from app.agent.summariser import INSTRUCTIONS, ByFunction, ByModel, Summariser, SummaryFunction
from app.agent.tokens import estimate, estimate_all, reported
from app.agent.turns import sound_cuts, turn_starts
from app.conversation.messages import Message, Role
from app.conversation.recall import Recall
from app.conversation.views import stands_for_others, store_keeps

_LEAST_REQUEST = 4_000
_SHORTEST = estimate(summary_message("x", covers="x", origin=""))


class Compaction:
    """Sums up when the prompt has `threshold` tokens or more, and keeps about `keep_tokens` of its end.

    How many it has is what the provider reported for the last answer to the present view, and an estimate of
    all that came later; an estimate of everything where nothing was reported since the last summary.

    What is kept are whole turns, as many as fit `keep_tokens` (a quarter of the threshold by default), but at
    least the present one. Only where that one alone is too long is it cut too, before an answer of the model.
    If a prompt is more than its messages make (long instructions, many tools), less of them is kept.

    The summary is written by the agent's model, by `model`, or by `function`, which takes the messages and
    returns text. A model is told with `instructions` what to do, and is shown at most `result_characters` of
    each tool's input and output, and about `request_tokens` in one call (by default the threshold, 4,000 at
    least). ValueError for numbers that make no sense, and for both a model and a function.
    """

    def __init__(
        self,
        threshold: int,
        *,
        keep_tokens: int | None = None,
        model: Model | None = None,
        function: SummaryFunction | None = None,
        instructions: str = INSTRUCTIONS,
        result_characters: int = 8_000,
        request_tokens: int | None = None,
        origin: str = "compaction",
    ) -> None:
        self.threshold = threshold
        self.keep_tokens = threshold // 4 if keep_tokens is None else keep_tokens
        self.origin = origin
        request_tokens = max(threshold, _LEAST_REQUEST) if request_tokens is None else request_tokens
        _check(self.threshold, self.keep_tokens, result_characters, request_tokens)
        if model is not None and function is not None:
            raise ValueError("either a model or a function writes the summaries, not both")
        self._summariser: Summariser = (
            ByModel(model, instructions, request_tokens, result_characters)
            if function is None
            else ByFunction(function)
        )

    def recall(self) -> Recall:
        return Recall(summarised=True)

    def view(self, messages: Sequence[Message]) -> Sequence[Message]:
        return projected(messages)

    def plan(self, messages: Sequence[Message]) -> Plan | None:
        occupied = occupancy(messages)
        if occupied < self.threshold:
            return None
        view = projected(messages)
        earlier = view[0] if view and stands_for_others(view[0]) else None
        rest = view if earlier is None else view[1:]
        cut = self._cut(rest, 0 if earlier is None else estimate(earlier), occupied)
        if cut == 0:
            return None
        return Plan(rest[cut - 1].id, tuple(rest[:cut]), tuple(rest[cut:]), earlier)

    async def summarise(self, plan: Plan, means: Means) -> Message:
        text = await self._summariser.write(plan, means)
        summary = summary_message(text, covers=plan.covers, origin=self.origin, clock=means.run.clock)
        if estimate(summary) >= estimate_all(plan.replaced):
            raise NotSummarised("the summary is not shorter than what it stands for")
        return summary

    def _cut(self, messages: Sequence[Message], before: int, occupied: int) -> int:
        """How many of the messages, which follow `before` tokens of summary, the next one is to cover."""
        behind = _behind(messages)
        share = min(1.0, (before + behind[0]) / occupied)
        turns = turn_starts(messages)
        present = turns[-1] if turns else 0
        possible = _possible(messages, before, behind)
        cuts = _among(possible, turns)
        too_long = behind[present] > self.keep_tokens and behind[present] >= self.threshold * share
        if too_long:
            inside = (i for i in range(present + 1, len(messages)) if messages[i].role is Role.ASSISTANT)
            cuts = _among(possible, inside) or cuts
        fitting = (cut for cut in cuts if behind[cut] <= self.keep_tokens * share)
        return next(fitting, cuts[-1] if cuts else 0)


def occupancy(messages: Sequence[Message]) -> int:
    """About how many tokens the next prompt has."""
    at = newest_summary(messages)
    later = 0
    for index in range(len(messages) - 1, -1 if at is None else at, -1):
        measured = reported(messages[index].usage)
        if measured:
            return measured + later
        later += estimate(messages[index])
    return estimate_all(projected(messages))


def _behind(messages: Sequence[Message]) -> list[int]:
    """For each index, the one behind the last too, the tokens from there to the end."""
    sums = list(accumulate((estimate(message) for message in reversed(messages)), initial=0))
    return sums[::-1]


def _possible(messages: Sequence[Message], before: int, behind: Sequence[int]) -> list[int]:
    """For each index the cut that covers what stands before it; 0 where that cannot be, or is not worth it.

    Messages that are not stored cannot be named as the last one covered, so those at the end of the covered
    part stay in view, for as long as they live.
    """
    sound = sound_cuts(messages)
    cuts, last = [0], 0
    for index, message in enumerate(messages):
        last = index + 1 if store_keeps(message) else last
        shrinks = before + behind[0] - behind[last] > _SHORTEST
        cuts.append(last if sound[last] and shrinks else 0)
    return cuts


def _among(possible: Sequence[int], indices: Iterable[int]) -> list[int]:
    return [possible[index] for index in indices if possible[index]]


def _check(threshold: int, keep: int, result_characters: int, request_tokens: int) -> None:
    if threshold < 1:
        raise ValueError(f"the threshold is at least 1 token, not {threshold}")
    if not 0 <= keep < threshold:
        raise ValueError(f"keep_tokens is at least 0 and below the threshold of {threshold}, not {keep}")
    if result_characters < 1 or request_tokens < 2:
        raise ValueError("a request to sum up has room for something")

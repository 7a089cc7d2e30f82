"""What a client's list says of the branch it stands on: where the turn goes on, and on what.

A list is what its user sees. Its last message that the thread holds decides: behind it the conversation goes
on, and what the user does not see there any more is not on the new branch.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from app.agui.messages import output_owner
from app.agui.said import Said
from app.conversation.entries import MessageEntry, StoredEntry
from app.conversation.messages import Role
from app.conversation.views import reader_sees
from app.store.adapter import KEEP, Keep, RunRecord

HEAD = "head"
START = "start"


@dataclass(frozen=True, slots=True)
class Heard:
    """A client's list, sorted by what the thread holds.

    `new` are the user messages behind `last_known`; `answers` unknown tool messages, wherever they stand.
    `asks_again` is the known user message that the list ends in. `ids` are those of all messages, `calls`
    those that known assistant messages make, and `answered` those to which there is a known answer.
    """

    new: tuple[Said, ...]
    answers: tuple[Said, ...]
    last_known: Said | None
    asks_again: Said | None
    is_empty: bool
    ids: frozenset[str]
    calls: frozenset[str]
    answered: frozenset[str]
    ignored: int


@dataclass(frozen=True, slots=True)
class Place:
    """The run in which a known message stands, with its entries. `at_tip` tells that it is the last run of
    the head's branch in which anything was said."""

    run: RunRecord
    entries: Sequence[StoredEntry]
    at_tip: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a turn goes on: behind the head (KEEP), behind `after_entry` of a run or all of it, or at the
    start (None). `copied` entries of `source` are asked again."""

    previous_run_id: str | Keep | None = KEEP
    after_entry: str | None = None
    copied: tuple[StoredEntry, ...] = ()
    source: RunRecord | None = None


def hear(messages: Sequence[Said], known: Mapping[str, str]) -> Heard:
    """Sorts the list. New is what a person said after the last message that the thread holds. What else it
    does not hold is not trusted, nor is a second message under one id."""
    last_known = max((said for said in messages if said.id in known), key=_index, default=None)
    behind = -1 if last_known is None else last_known.index
    new: list[Said] = []
    answers: list[Said] = []
    seen: set[str] = set()
    ignored = 0
    for said in messages:
        first = said.id not in seen
        seen.add(said.id)
        if said.role == "tool" and not _is_held(said, known):
            answers.append(said)
        elif first and _is_held(said, known):
            continue
        elif first and said.role == "user" and said.index > behind:
            new.append(said)
        else:
            ignored += 1
    spoken = [said for said in messages if said.role in ("user", "assistant", "tool")]
    last = spoken[-1] if spoken else None
    return Heard(
        new=tuple(new),
        answers=tuple(answers),
        last_known=last_known,
        asks_again=last if last and last.role == "user" and last.id in known else None,
        is_empty=last is None,
        ids=frozenset(seen),
        calls=_calls(messages, known, "assistant"),
        answered=_calls(messages, known, "tool"),
        ignored=ignored,
    )


def _index(said: Said) -> int:
    return said.index


def _calls(messages: Sequence[Said], known: Mapping[str, str], role: str) -> frozenset[str]:
    return frozenset(
        call for said in messages if said.role == role and said.id in known for call in said.calls
    )


def _is_held(said: Said, known: Mapping[str, str]) -> bool:
    """Reasoning and the output of a provider's tool are parts of an assistant message, no entries."""
    return said.id in known or said.role == "reasoning" or output_owner(said.id) in known


def branch_off(heard: Heard, place: Place | None, wish: str | None, *, awaits: bool) -> Branch | None:
    """The branch on which the turn goes on; None if the list asks for nothing.

    `place` is that of `heard.last_known`. `wish` is `head`, `start` or the id of the run to go on from, and
    comes before the list. `awaits`: the branch ends in something that was not answered, which is all that an
    empty list can ask for.
    """
    if heard.new:
        return _say(heard, place, wish)
    if heard.asks_again is not None and place is not None:
        return _ask_again(heard.asks_again.id, place, wish)
    return wished(wish) if heard.is_empty and awaits and wish != START else None


def wished(wish: str | None) -> Branch:
    """The branch that a wish alone names."""
    if wish == START:
        return Branch(None)
    return Branch() if wish in (None, HEAD) else Branch(wish)


def _say(heard: Heard, place: Place | None, wish: str | None) -> Branch:
    if wish is not None or place is None or heard.last_known is None:
        return wished(wish)
    behind = _position(place, heard.last_known.id) + 1
    for index in range(behind, len(place.entries)):
        entry = place.entries[index]
        if _said_by_a_person(entry) and entry.id not in heard.ids:
            return _before(place, index)
    return Branch() if place.at_tip else Branch(place.run.id)


def _ask_again(message_id: str, place: Place, wish: str | None) -> Branch | None:
    """A new answer to a user message. One that nobody answered yet is answered where it stands; else it is
    copied, with what else stands around it in the opening, to a branch beside the one of its answer."""
    entries, at = place.entries, _position(place, message_id)
    if not _said_by_a_person(entries[at]):
        return None
    end = next((i for i in range(at + 1, len(entries)) if _ends_opening(entries[i])), len(entries))
    unanswered = place.at_tip and end == len(entries)
    if wish != START and (unanswered or wish == HEAD):
        return wished(wish) if unanswered else None
    start = next((i + 1 for i in range(at - 1, -1, -1) if _is_answer(entries[i])), 0)
    branch = Branch(None) if wish == START else _before(place, start)
    return Branch(branch.previous_run_id, branch.after_entry, tuple(entries[start:end]), place.run)


def _before(place: Place, index: int) -> Branch:
    """The branch that ends before this entry of the run."""
    if index == 0:
        return Branch(place.run.previous_run_id, place.run.branch_after_entry)
    return Branch(place.run.id, place.entries[index - 1].id)


def _position(place: Place, entry_id: str) -> int:
    return next(index for index, entry in enumerate(place.entries) if entry.id == entry_id)


def _said_by_a_person(entry: StoredEntry) -> bool:
    return isinstance(entry, MessageEntry) and entry.message.role is Role.USER and reader_sees(entry.message)


def _is_answer(entry: StoredEntry) -> bool:
    return isinstance(entry, MessageEntry) and entry.message.role is not Role.USER


def _ends_opening(entry: StoredEntry) -> bool:
    return _is_answer(entry) or _said_by_a_person(entry)


def unheard(heard: Heard, taken: Set[int]) -> int:
    """How many unknown tool messages are no history: neither taken as answers (by their index) nor another
    spelling of a result that the thread holds, such as a client's copy under an id of its own."""
    told = set(heard.answered)
    count = 0
    for said in heard.answers:
        (call,) = said.calls
        if said.index not in taken and (call not in heard.calls or call in told):
            count += 1
        told.add(call)
    return count

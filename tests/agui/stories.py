"""Random runs: what an agent tells, beside what is stored of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from app.agent.events import (
    AgentEvent,
    Appended,
    MessageDone,
    RunDone,
    RunEvent,
    RunOpened,
    Snapshot,
    StepEnded,
    StepStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolDone,
)
from app.agui.hydrate import WireRenderer, hydrate
from app.conversation.blocks import (
    Block,
    DataSource,
    FileSource,
    Image,
    Reminder,
    ServerToolOutput,
    Text,
    Thinking,
    ToolCall,
    UrlSource,
)
from app.conversation.entries import MessageEntry, StoredEntry, TransientEntry
from app.conversation.messages import (
    Injected,
    Message,
    StopReason,
    assistant_message,
    tool_result_message,
    user_message,
)
from app.conversation.outcomes import CALLS_LEFT_OPEN, EndReason, RunEnd, RunStatus
from app.store.adapter import WireRow
from tests.agui.beside import State, custom_entries, doings, instants, run_ends, unruly_doings, values, words

AGENT = "assistant"


@dataclass
class Story:
    """A run as it is told live and as it is kept. `before` is what the thread held already, `state` the
    shared state at the end."""

    opened: RunOpened
    before: list[StoredEntry] = field(default_factory=list[StoredEntry])
    events: list[AgentEvent] = field(default_factory=list[AgentEvent])
    stored: list[StoredEntry] = field(default_factory=list[StoredEntry])
    state: State = field(default_factory=lambda: State({"n": None}))
    end: RunEnd = field(default_factory=lambda: RunEnd.by(EndReason.DONE))

    def rows(self) -> list[WireRow]:
        """Of the run alone."""
        return wire_rows(self.stored)

    def thread(self) -> list[WireRow]:
        """Of all that the thread holds."""
        return wire_rows([*self.before, *self.stored])

    def told(self) -> list[RunEvent]:
        """All of it, as the server tells it."""
        events: list[RunEvent] = [self.opened, *self.events]
        if self.end.status is RunStatus.PAUSED:
            rows = self.thread()
            messages = hydrate(rows, legacy=False), hydrate(rows, legacy=True)
            events.append(Snapshot(self.state.value, *messages))
        return [*events, RunDone(self.end)]


def wire_rows(entries: Sequence[StoredEntry]) -> list[WireRow]:
    """The entries as a store gives them back."""
    rows: list[WireRow] = []
    for seq, entry in enumerate(entries):
        wire = WireRenderer().render(entry)
        rows.append(WireRow(seq, "run", wire, entry if wire is None else None))
    return rows


def media() -> st.SearchStrategy[Image]:
    sources = st.sampled_from(
        [
            DataSource(value="AAAA", mime_type="image/png"),
            UrlSource(value="https://example.org/a.png"),
            FileSource(value="file-1", provider="openai"),
        ]
    )
    return st.builds(Image, source=sources, id=st.none() | words, metadata=st.none() | st.just({"a": None}))


@st.composite
def user_messages(draw: st.DrawFn, id: str, *, parts: bool = True) -> Message:
    content: list[Block] = [Text(text=draw(words), id=draw(st.none() | words), metadata=draw(values))]
    as_parts = parts and draw(st.booleans())
    if as_parts:
        content += draw(st.lists(media(), max_size=2))
    if draw(st.booleans()):
        content.append(Reminder(text="hush", origin="context"))
    made = user_message(
        content,
        id=id,
        sender_id=draw(st.none() | words),
        name=draw(st.none() | words),
        as_parts=as_parts,
        metadata={"theirs": 1, "createdAt": "never"} if draw(st.booleans()) else None,
    )
    return made.model_copy(update={"created_at": draw(instants)})


@st.composite
def responses(draw: st.DrawFn, id: str) -> tuple[list[AgentEvent], Message]:
    """One model response in pieces and whole."""
    events: list[AgentEvent] = []
    blocks: list[Block] = []
    late: list[AgentEvent] = []
    for number, kind in enumerate(
        draw(st.lists(st.sampled_from(["text", "think", "call", "server"]), max_size=5))
    ):
        if kind == "text":
            pieces = draw(st.lists(words, min_size=1, max_size=3))
            events += [TextDelta(id, piece) for piece in pieces]
            blocks.append(Text(text="".join(pieces)))
        elif kind == "think":
            told, block = _thinking(draw, id, f"{id}-t{number}")
            events += told
            blocks.append(block)
        else:
            told, block = _call(draw, id, f"{id}-c{number}", server=kind == "server")
            events += told[:-1]
            # Parallel calls: the end of one may come after the start of others.
            (late if draw(st.booleans()) else events).append(told[-1])
            blocks.append(block)
    message = assistant_message(
        blocks, id=id, sender_id=AGENT, stop_reason=draw(st.sampled_from(StopReason))
    ).model_copy(update={"created_at": draw(instants)})
    return [*events, *late, MessageDone(message)], message


def _thinking(draw: st.DrawFn, message_id: str, id: str) -> tuple[list[AgentEvent], Thinking]:
    pieces, at = draw(st.lists(words, max_size=2)), draw(st.integers(0, 2**61))
    encrypted = draw(st.none() | words)
    deltas = [ThinkingDelta(id, piece) for piece in pieces]
    block = Thinking(id=id, text="".join(pieces), encrypted=encrypted, created_at=at)
    return [ThinkingStarted(message_id, id), *deltas, ThinkingEnded(id, at, encrypted)], block


def _call(draw: st.DrawFn, message_id: str, id: str, *, server: bool) -> tuple[list[AgentEvent], ToolCall]:
    pieces = draw(st.lists(words, max_size=2))
    told: list[AgentEvent] = [ToolCallStarted(message_id, id, "look")]
    told += [ToolCallDelta(id, piece) for piece in pieces]
    outputs = [ServerToolOutput(content={"a": [1]}), ServerToolOutput(content="found", is_error=True), None]
    call = ToolCall(
        id=id,
        name="look",
        arguments="".join(pieces),
        server=server,
        output=draw(st.sampled_from(outputs)) if server else None,
        encrypted=draw(st.none() | words),
    )
    return [*told, ToolCallEnded(id)], call


@st.composite
def results(draw: st.DrawFn, call: ToolCall) -> Message:
    content: list[Block] = [Text(text=draw(words))]
    content += draw(st.lists(media(), max_size=1))
    if draw(st.booleans()):
        content.append(Reminder(text="hush", origin="tool"))
    return tool_result_message(
        call.id, call.name, content, id=f"{call.id}-r", is_error=draw(st.booleans()), sender_id=AGENT
    )


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """A run of an agent that keeps its contract."""
    story = draw(_opened())
    for number in range(draw(st.integers(0, 3))):
        story.events.append(StepStarted(f"step {number}"))
        events, message = draw(responses(f"m{number}"))
        story.events += events
        story.stored.append(MessageEntry(message))
        _answer(draw, story, message.tool_calls())
        for entry in draw(_appended(f"a{number}")):
            story.events.append(Appended(entry))
            if not isinstance(entry, TransientEntry):
                story.stored.append(entry)
        if draw(st.booleans()):
            story.events.append(StepEnded(f"step {number}"))
    reason, calls = draw(st.sampled_from(EndReason)), list[ToolCall]()
    if reason in CALLS_LEFT_OPEN:
        events, message = draw(responses("last"))
        story.events += events
        story.stored.append(MessageEntry(message))
        calls = message.tool_calls()
    story.end = draw(run_ends(reason, calls))
    return story


def _answer(draw: st.DrawFn, story: Story, calls: Sequence[ToolCall]) -> None:
    """The calls get their results, with what else their tools do meanwhile. No records where clients hold a
    message already that is stored behind them."""
    for call in calls:
        events, records = draw(doings(call, story.state, records=not story.opened.held))
        result = draw(results(call))
        story.events += [*events, ToolDone(result)]
        story.stored += [*records, MessageEntry(result)]


@st.composite
def _opened(draw: st.DrawFn) -> Story:
    """How a run begins: on a new thread, behind calls that its client answers or nobody did, or as what
    takes up a paused run."""
    users = tuple(draw(user_messages(f"u{number}")) for number in range(draw(st.integers(0, 2))))
    records = tuple(draw(custom_entries(f"e{number}")) for number in range(draw(st.integers(0, 1))))
    differs = draw(st.booleans())
    calls = [ToolCall(id=f"p{number}", name="look") for number in range(draw(st.integers(0, 2)))]
    before: list[StoredEntry] = [MessageEntry(assistant_message([*calls], id="p"))] if calls else []
    if calls and draw(st.booleans()):
        opened = RunOpened(
            "thread", "run", AGENT, records, state={"n": None}, state_differs=differs, held=users
        )
        story = Story(opened, before, stored=[*records])
        _answer(draw, story, calls)
        story.events += [Appended(MessageEntry(message)) for message in users]
        story.stored += map(MessageEntry, users)
        return story
    answered = draw(st.integers(0, len(calls)))
    given, settled = [
        tuple(draw(results(call)) for call in part) for part in (calls[:answered], calls[answered:])
    ]
    accepted = (*given, *records, *users)
    opened = RunOpened("thread", "run", AGENT, accepted, {"n": None}, differs, settled)
    stored: list[StoredEntry] = [*map(MessageEntry, (*given, *settled)), *records, *map(MessageEntry, users)]
    return Story(opened, before, stored=stored)


@st.composite
def _appended(draw: st.DrawFn, id: str) -> list[StoredEntry | TransientEntry]:
    choices: list[StoredEntry | TransientEntry] = [
        MessageEntry(user_message("injected hush", injected=Injected.META, origin="hook", id=f"{id}-i")),
        draw(custom_entries(f"{id}-e")),
        TransientEntry("flash", 1),
        MessageEntry(draw(user_messages(f"{id}-u", parts=False))),
    ]
    return draw(st.lists(st.sampled_from(choices), max_size=2, unique_by=lambda entry: entry.id))


_ids = st.sampled_from(["x", "y"])


@st.composite
def _any_message(draw: st.DrawFn) -> Message:
    return draw(responses(draw(_ids)))[1]


unruly = st.lists(
    st.one_of(
        st.builds(TextDelta, _ids, words | st.just("")),
        st.builds(ThinkingStarted, _ids, _ids),
        st.builds(ThinkingDelta, _ids, words | st.just("")),
        st.builds(ThinkingEnded, _ids, st.just(1), st.none() | words),
        st.builds(ToolCallStarted, _ids, _ids, words),
        st.builds(ToolCallDelta, _ids, words | st.just("")),
        st.builds(ToolCallEnded, _ids),
        st.builds(MessageDone, _any_message()),
        st.builds(ToolDone, st.builds(ToolCall, id=_ids, name=words).flatmap(results)),
        unruly_doings,
        st.builds(Appended, st.builds(MessageEntry, _any_message() | user_messages("x"))),
        st.builds(StepStarted, _ids),
        st.builds(StepEnded, _ids),
        st.builds(RunDone, st.sampled_from(EndReason).flatmap(run_ends)),
        st.just(RunOpened("thread", "run", AGENT)),
    ),
    max_size=25,
)
"""What an agent tells that keeps no contract at all."""

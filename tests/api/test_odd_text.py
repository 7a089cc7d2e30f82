"""Odd text comes back as it was, on both databases."""

from collections.abc import Iterator

import pytest

from tests.services.chat import Chat, OpenChat, text_of, user

LAST = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)


def planes() -> Iterator[str]:
    """A piece of every block of 256 code points: each fourth character of the first planes, fewer beyond."""
    for start in range(0, LAST, 0x10000):
        step = 61 if start < 0x40000 else 4093
        codes = (code for code in range(start or 1, start + 0x10000, step) if code not in SURROGATES)
        yield "".join(map(chr, codes))


ODD = [
    "\x01\x1f\x7f\x80\x85",
    "\u2028\u2029",
    "\ufeffbom\ufffe\uffff",
    "e\u0301\u0327 é",
    "\u202eabc\u2066",
    "\\u0000",
]
WHOLE = "".join([*ODD, *planes()])


@pytest.fixture(params=["sqlite", "postgresql"])
async def chat(request: pytest.FixtureRequest, open_chat: OpenChat) -> Chat:
    settings = (
        {"database_url": request.getfixturevalue("postgres_url")} if request.param == "postgresql" else {}
    )
    return await open_chat(WHOLE, "two", **settings)


@pytest.mark.requirement("AGUI-05", "HIS-02")
async def test_text_of_every_plane_is_stored_streamed_and_returned_unchanged(chat: Chat) -> None:
    said = user(f"x{WHOLE}", "u1", name=f"n{WHOLE}", metadata={"k": WHOLE})
    events = await chat.run("t", said, state={"text": WHOLE, WHOLE[:40]: [WHOLE]})
    assert text_of(events) == WHOLE
    question, answer = await chat.messages("t")
    assert (question["content"], question["name"]) == (said["content"], said["name"])
    assert question["metadata"]["k"] == WHOLE
    assert answer["content"] == WHOLE
    state = (await chat.client.get("/threads/t/state")).json()["state"]
    assert state == {"text": WHOLE, WHOLE[:40]: [WHOLE]}
    [prompt] = chat.model.prompts
    assert prompt.messages[0].join_text() == said["content"]
    title = "t" + WHOLE[300:400]
    renamed = await chat.client.patch("/threads/t", json={"title": title})
    assert renamed.json()["title"] == title.strip()
    await chat.run("t", "more")
    again = [message.join_text() for message in chat.model.prompts[1].messages]
    assert again == [said["content"], WHOLE, "more"]


@pytest.mark.requirement("AGUI-16")
@pytest.mark.parametrize("text", [r'"a\u0000b"', r'"\ud83d"', "NaN", "1e999"])
async def test_what_cannot_be_kept_is_refused_and_nothing_is_stored(chat: Chat, text: str) -> None:
    message = '{"id":"u","role":"user","content":"hi"}'
    body = f'{{"threadId":"t","runId":"r","messages":[{message}],"state":{text}}}'
    headers = {"Content-Type": "application/json"}
    answer = await chat.client.post("/agents/assistant/run", content=body.encode(), headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (422, "state")
    assert await chat.threads() == []

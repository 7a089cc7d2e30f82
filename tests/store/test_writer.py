"""The writer of SQLite: who waits together is committed together, and fails alone."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text

from app.errors import StorageFailed, StoreClosed
from app.store.engine import sqlite_writer
from app.store.writer import Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one table."""
    file = tmp_path / "words.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE words (word TEXT UNIQUE)")
    return file


@pytest.fixture
def onlooker(path: Path) -> Iterator[sqlite3.Connection]:
    """A second connection to it."""
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def seen(onlooker: sqlite3.Connection) -> list[str]:
    """What another connection sees."""
    return [word for (word,) in onlooker.execute("SELECT word FROM words ORDER BY rowid")]


class Panic(BaseException):
    """What a unit may raise beside an Exception."""


class Saying:
    """A unit that inserts a word and, if it is told to, waits in the middle of its transaction."""

    def __init__(self, word: str, *, waits: bool = False, fails: bool = False) -> None:
        self.word = word
        self.reached = Event()
        self.go_on = Event()
        self._fails = fails
        if not waits:
            self.go_on.set()

    def __call__(self, connection: Connection) -> str:
        connection.execute(text("INSERT INTO words VALUES (:word)"), {"word": self.word})
        self.reached.set()
        assert self.go_on.wait(10)
        if self._fails:
            raise ValueError(self.word)
        return self.word


@pytest.mark.requirement("HIS-09")
async def test_nobody_sees_anything_of_a_group_before_its_commit(path: Path, onlooker: sqlite3.Connection):
    writer = Writer(sqlite_writer(path))
    gate, first, last = Saying("gate", waits=True), Saying("first"), Saying("last", waits=True)
    tasks = [asyncio.create_task(writer.run(gate))]
    await asyncio.to_thread(gate.reached.wait, 10)
    tasks += [asyncio.create_task(writer.run(unit)) for unit in (first, last)]
    await asyncio.sleep(0)
    gate.go_on.set()
    assert await tasks[0] == "gate"
    assert await asyncio.to_thread(last.reached.wait, 10)
    assert first.reached.is_set()
    assert seen(onlooker) == ["gate"]
    assert not tasks[1].done()
    last.go_on.set()
    assert await asyncio.gather(*tasks[1:]) == ["first", "last"]
    assert seen(onlooker) == ["gate", "first", "last"]
    await writer.close()


async def test_a_unit_that_fails_takes_none_of_its_group_along(path: Path, onlooker: sqlite3.Connection):
    writer = Writer(sqlite_writer(path))
    gate = Saying("gate", waits=True)
    units = [gate, Saying("a"), Saying("bad", fails=True), Saying("a"), Saying("b")]
    tasks = [asyncio.create_task(writer.run(unit)) for unit in units]
    await asyncio.to_thread(gate.reached.wait, 10)
    gate.go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [str, str, ValueError, StorageFailed, str]
    assert seen(onlooker) == ["gate", "a", "b"]
    await writer.close()


async def test_a_group_whose_commit_fails_is_told_so_and_the_next_one_is_stored(
    path: Path, onlooker: sqlite3.Connection
):
    writer = Writer(sqlite_writer(path))
    assert await writer.run(Saying("kept")) == "kept"

    def breaks_the_transaction(connection: Connection) -> None:
        connection.execute(text("INSERT INTO words VALUES ('lost')"))
        connection.exec_driver_sql("ROLLBACK")

    gate = Saying("gate", waits=True)
    tasks = [asyncio.create_task(writer.run(gate))]
    await asyncio.to_thread(gate.reached.wait, 10)
    lost = [Saying("early"), breaks_the_transaction, Saying("late")]
    tasks += [asyncio.create_task(writer.run(unit)) for unit in lost]  # pyright: ignore[reportArgumentType]
    await asyncio.sleep(0)
    gate.go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [str, StorageFailed, StorageFailed, StorageFailed]
    assert await writer.run(Saying("next")) == "next"
    assert seen(onlooker) == ["kept", "gate", "next"]
    await writer.close()


async def test_a_writer_that_is_closed_finishes_what_waits(path: Path, onlooker: sqlite3.Connection):
    writer = Writer(sqlite_writer(path))
    tasks = [asyncio.create_task(writer.run(Saying(f"{n}"))) for n in range(600)]
    await asyncio.sleep(0)
    await asyncio.gather(writer.close(), writer.close())
    assert await asyncio.gather(*tasks) == [f"{n}" for n in range(600)]
    assert len(seen(onlooker)) == 600
    with pytest.raises(StoreClosed):
        await writer.run(Saying("late"))


async def test_a_caller_that_left_keeps_nobody_from_hearing(path: Path, onlooker: sqlite3.Connection):
    writer = Writer(sqlite_writer(path))
    gate = Saying("gate", waits=True)
    gone = asyncio.create_task(writer.run(gate))
    stays = asyncio.create_task(writer.run(Saying("stays")))
    await asyncio.to_thread(gate.reached.wait, 10)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    gate.go_on.set()
    assert await stays == "stays"
    assert seen(onlooker) == ["gate", "stays"]
    await writer.close()


async def test_units_that_wait_together_share_a_few_commits(path: Path, onlooker: sqlite3.Connection):
    engine = sqlite_writer(path)
    commits: list[object] = []
    event.listen(engine, "commit", commits.append)
    writer = Writer(engine)
    gate = Saying("gate", waits=True)
    tasks = [asyncio.create_task(writer.run(gate))]
    await asyncio.to_thread(gate.reached.wait, 10)
    tasks += [asyncio.create_task(writer.run(Saying(f"{n}"))) for n in range(50)]
    await asyncio.sleep(0)
    gate.go_on.set()
    await asyncio.gather(*tasks)
    assert len(seen(onlooker)) == 51
    assert len(commits) == 2
    await writer.close()


async def test_a_commit_is_on_the_disk_before_anybody_hears_of_it(path: Path):
    writer = Writer(sqlite_writer(path))

    def settings(connection: Connection) -> list[object]:
        asked = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in asked]

    assert await writer.run(settings) == ["wal", 2, 1]
    await writer.close()


@pytest.mark.parametrize("error", [Panic(), SystemExit(3), KeyboardInterrupt(), StopIteration()])
async def test_whatever_a_unit_raises_its_caller_hears_of_it_and_the_next_one_is_stored(
    path: Path, onlooker: sqlite3.Connection, error: BaseException
):
    writer = Writer(sqlite_writer(path))

    def breaks(connection: Connection) -> None:
        connection.execute(text("INSERT INTO words VALUES ('lost')"))
        raise error

    async with asyncio.timeout(10):
        with pytest.raises(StorageFailed) as alone:
            await writer.run(breaks)
        assert alone.value.__cause__ is error
        gate = Saying("gate", waits=True)
        tasks = [asyncio.create_task(writer.run(gate))]
        await asyncio.to_thread(gate.reached.wait, 10)
        units = [Saying("a"), breaks, Saying("b")]
        tasks += [asyncio.create_task(writer.run(unit)) for unit in units]  # pyright: ignore[reportArgumentType]
        await asyncio.sleep(0)
        gate.go_on.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [str, str, StorageFailed, str]
    assert seen(onlooker) == ["gate", "a", "b"]
    await writer.close()


class Dying(Writer):
    """A writer whose thread ends in the middle of its second group."""

    def __init__(self, engine: Engine) -> None:
        self._groups = 0
        super().__init__(engine)

    def _commit(self, group: list[Any]) -> None:
        self._groups += 1
        if self._groups > 1:
            raise Panic
        super()._commit(group)


async def test_nobody_waits_for_a_thread_that_has_ended(path: Path, caplog: pytest.LogCaptureFixture):
    writer = Dying(sqlite_writer(path))
    gate = Saying("gate", waits=True)
    tasks = [asyncio.create_task(writer.run(gate))]
    await asyncio.to_thread(gate.reached.wait, 10)
    tasks += [asyncio.create_task(writer.run(Saying(f"{n}"))) for n in range(300)]
    await asyncio.sleep(0)
    gate.go_on.set()
    async with asyncio.timeout(10):
        first, *others = await asyncio.gather(*tasks, return_exceptions=True)
        with pytest.raises(StoreClosed):
            await writer.run(Saying("late"))
        await writer.close()
    assert first == "gate"
    assert {type(result) for result in others} == {StoreClosed}
    assert "Panic" in caplog.text


async def test_an_engine_that_cannot_be_disposed_of_keeps_nobody_from_closing(
    path: Path, caplog: pytest.LogCaptureFixture
):
    engine = sqlite_writer(path)

    def refuse(engine: Engine) -> None:
        raise OSError("the disk is gone")

    event.listen(engine, "engine_disposed", refuse)
    writer = Writer(engine)
    await writer.run(Saying("a"))
    async with asyncio.timeout(10):
        await writer.close()
    assert "the disk is gone" in caplog.text

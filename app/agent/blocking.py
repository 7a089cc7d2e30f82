"""Functions that block, in threads of their own."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import cast


async def in_thread(function: Callable[[], object], name: str) -> object:
    """Runs a blocking function in a daemon thread of its own, named by what it is. Raises what it raises;
    RuntimeError for what would end a task or the program.

    A shared pool would be blocked by functions that hang, and an executor's threads hold up the exit of the
    process. When the wait is cancelled the function goes on and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: object, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def work() -> None:
        result: object = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except StopIteration:
            error = RuntimeError(f"the {name} raised StopIteration")
        except Exception as raised:
            error = raised
        except BaseException as raised:
            error = RuntimeError(f"the {name} raised {type(raised).__name__}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await cast(Awaitable[object], future)

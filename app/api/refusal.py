"""How a start that is refused is told."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import StartupRefused


class PlainRefusal:
    """ASGI middleware: a start that is refused says why in words, not in a traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return

        held: list[Message] = []

        async def holding_failure(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":
                held.append(message)
            else:
                await send(message)

        try:
            await self._app(scope, receive, holding_failure)
        except StartupRefused as refusal:
            await send({"type": "lifespan.startup.failed", "message": refusal.public})
        except BaseException:
            for message in held:
                await send(message)
            raise

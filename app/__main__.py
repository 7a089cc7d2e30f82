"""`python -m app` serves; `python -m app migrate` brings the database to the newest migration."""

import argparse
import asyncio
import logging
import sys

import uvicorn

from app.errors import StartupRefused
from app.main import create_app
from app.settings import Settings, read_settings
from app.store.opening import migrate


def main() -> None:
    """The `verbatim` command. Exit status 2 for what is refused at start, with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="verbatim", description="A durable conversation server for agents.")
    parser.add_argument("command", nargs="?", choices=("serve", "migrate"), default="serve")
    command = parser.parse_args().command
    try:
        settings = read_settings()
        logging.basicConfig(
            level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
        if command == "migrate":
            revision = asyncio.run(migrate(settings.database_url, settings.data_dir))
            print(f"The database is at revision {revision}.")
        else:
            serve(settings)
    except StartupRefused as refusal:
        print(f"verbatim: {refusal.public}", file=sys.stderr)
        sys.exit(2)


def serve(settings: Settings) -> None:
    """Serves until told to end. StartupRefused if the database or the agents cannot be had."""
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        server_header=False,
        timeout_graceful_shutdown=15,
    )
    _Server(config).run()


class _Server(uvicorn.Server):
    """Says where the page is once the socket listens, and passes on why the start was refused."""

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets)  # pyright: ignore[reportArgumentType]
        if self.started:
            for server in self.servers:
                for socket in server.sockets:
                    host, port = socket.getsockname()[:2]
                    shown = f"[{host}]" if ":" in host else host
                    print(f"Verbatim is at http://{shown}:{port}/", flush=True)


if __name__ == "__main__":
    main()

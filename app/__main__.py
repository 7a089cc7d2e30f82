"""`python -m app` serves; `python -m app migrate` brings the database to the newest migration."""

import argparse
import asyncio
import logging
import sys

from app.errors import StartupRefused
from app.main import create_app
from app.serving import serve
from app.settings import read_settings
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
            serve(create_app(settings), settings)
    except StartupRefused as refusal:
        print(f"verbatim: {refusal.public}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()

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
    """The `verbatim` command. What is refused at start ends it with a status other than 0 and the reason."""
    parser = argparse.ArgumentParser(prog="verbatim", description="A durable conversation server for agents.")
    parser.add_argument("command", nargs="?", choices=("serve", "migrate"), default="serve")
    command = parser.parse_args().command
    try:
        settings = read_settings()
        logging.basicConfig(
            level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
        for name in ("httpx", "httpx2", "alembic"):  # they tell every address, with what stands in it
            logging.getLogger(name).setLevel(logging.WARNING)
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

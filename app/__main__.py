"""`python -m app` serves; `python -m app migrate` brings the database to the newest migration."""

import argparse
import asyncio
import logging
import sys

from app.errors import StartupRefused
from app.main import create_app
from app.serving import serve
from app.settings import Settings, read_settings
from app.store.opening import migrate


def main() -> None:
    """The `verbatim` command. What is refused at start ends it with status 2, and the reason on stderr."""
    parser = argparse.ArgumentParser(prog="verbatim", description="A durable conversation server for agents.")
    parser.add_argument("command", nargs="?", choices=("serve", "migrate"), default="serve")
    command = parser.parse_args().command
    try:
        settings = read_settings()
        set_up_logging(settings)
        if command == "migrate":
            revision = asyncio.run(migrate(settings.database_url, settings.data_dir))
            print(f"The database is at revision {revision}.")
        else:
            serve(create_app(settings), settings)
    except StartupRefused as refusal:
        print(f"verbatim: {refusal.public}", file=sys.stderr)
        sys.exit(2)


def set_up_logging(settings: Settings) -> None:
    """One form for all lines. Libraries that talk at every start or request are heard when they warn."""
    level = settings.log_level.upper()
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if level == "INFO":
        for name in ("alembic", "uvicorn"):
            logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("httpx", "httpx2", "httpcore", "httpcore2"):  # they tell addresses, with what stands in them
        logging.getLogger(name).setLevel(logging.WARNING)


if __name__ == "__main__":
    main()

"""A real Chromium: the machine's own, or the one in the npm package `@sparticuz/chromium`."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

import pytest
from playwright.async_api import Page, async_playwright

from tests.services.missing import missing
from tests.services.node import Node, NotInstalled, find_node, npm_ci

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_BOUND = 30.0
"""Seconds that the start of the browser may take."""
END_BOUND = 10.0
"""Seconds after which its end is forced."""
# The package takes its shared libraries along only where it believes to run on this platform.
_LAMBDA = {"AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x"}
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""


@dataclass(frozen=True, slots=True)
class Chromium:
    """A browser's executable and what its environment needs beside ours."""

    executable: Path
    env: dict[str, str] = field(default_factory=dict[str, str])


def _packaged(node: Node) -> Chromium:
    folder = npm_ci(node, HERE / "chromium_package", "chromium", lambda fresh: _unpack(node, fresh))
    home = folder / "unpacked"
    libraries = [str(home / "al2023" / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    env = {
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
        "FONTCONFIG_FILE": str(home / "fonts" / "fonts.conf"),
    }
    return Chromium(home / "chromium", env)


def _unpack(node: Node, folder: Path) -> None:
    home = folder / "unpacked"
    home.mkdir()
    done = subprocess.run(
        [node.executable, HERE / "unpack_chromium.mjs", folder],
        env={**os.environ, **_LAMBDA, "TMPDIR": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not (home / "chromium").exists():
        raise NotInstalled(f"@sparticuz/chromium did not unpack: {done.stderr.strip()[-600:]}")
    (home / "fonts" / "fonts.conf").write_text(_FONTS)
    shutil.rmtree(folder / "node_modules")  # what is unpacked is all that is used


@pytest.fixture(scope="session")
def chromium() -> Chromium:
    """The browser to start."""
    for name in NAMES:
        if found := shutil.which(name):
            return Chromium(Path(found))
    way_out = "Install Chromium (`apt-get install chromium`), or Node ≥ 20 with a registry that npm can reach"
    node = find_node()
    if node is None:
        missing("No Chromium and no Node found", way_out)
    try:
        return _packaged(node)
    except NotInstalled as error:
        what = str(error)
    missing(what, way_out)


@pytest.fixture(scope="session")
def devtools(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one running browser. Starting it takes longer than most tests of a page, so all share
    it: what a test may leave behind is in its own context, which ends with it."""
    profile = tmp_path_factory.mktemp("chromium")
    log = profile / "output.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [chromium.executable, *FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}"],
            env={**os.environ, **chromium.env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    with process:
        try:
            yield _address(process, profile / "DevToolsActivePort", log)
        finally:
            process.terminate()
            try:
                process.wait(END_BOUND)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(process: "subprocess.Popen[bytes]", told: Path, log: Path) -> str:
    """Waits until the browser has written where it listens: a port and a path, a line each."""
    until = monotonic() + START_BOUND
    while monotonic() < until and process.poll() is None:
        if told.exists() and len(lines := told.read_text().splitlines()) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        sleep(0.02)
    raise NotInstalled(f"Chromium does not start: {log.read_text(errors='replace').strip()[-600:]}")


@pytest.fixture
async def page(devtools: str) -> AsyncIterator[Page]:
    """An empty page in a fresh context: no cookie, storage or cache of another test. The test fails if a
    script on it throws."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(devtools)
        context = await browser.new_context()
        opened = await context.new_page()
        thrown: list[str] = []
        opened.on("pageerror", lambda error: thrown.append(str(error)))
        try:
            yield opened
        finally:
            await context.close()
            await browser.close()  # ends the connection alone
    assert not thrown, f"the page threw: {thrown}"

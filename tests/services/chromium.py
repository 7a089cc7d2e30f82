"""A real Chromium: the machine's own, or the one in the npm package `@sparticuz/chromium`."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

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


@pytest.fixture
async def browser(chromium: Chromium) -> AsyncIterator[Browser]:
    """A fresh browser for one test."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=chromium.executable, args=FLAGS, env={**os.environ, **chromium.env}
        )
        try:
            yield started
        finally:
            await started.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """An empty page. The test fails if a script on it throws."""
    opened = await browser.new_page()
    thrown: list[str] = []
    opened.on("pageerror", lambda error: thrown.append(str(error)))
    yield opened
    assert not thrown, f"the page threw: {thrown}"

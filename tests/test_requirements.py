"""The manifest of requirements and the tests agree."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.manifest import DONE, load

pytest_plugins = ["pytester"]

TESTS = Path(__file__).parent
MANIFEST = TESTS / "requirements.toml"


def _ids_named_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
            yield from (ast.literal_eval(argument) for argument in node.args)


def _named() -> set[str]:
    return {id for file in TESTS.rglob("*.py") for id in _ids_named_in(file.read_text())}


def test_every_done_row_is_named_by_a_test():
    named = _named()
    assert [row.id for row in load(MANIFEST).values() if row.state == DONE and row.id not in named] == []


def test_every_id_that_a_test_names_has_a_row():
    assert sorted(_named() - load(MANIFEST).keys()) == []


def test_an_id_is_found_where_a_marker_names_it():
    source = "@pytest.mark.requirement('A-01', 'B-02')\ndef test_it(): ...\nmark = pytest.mark.other('C-03')"
    assert list(_ids_named_in(source)) == ["A-01", "B-02"]


PROJECT = {
    "pyproject": """
        [tool.pytest.ini_options]
        testpaths = ["tests"]
        markers = ["requirement(*ids): rows"]
        asyncio_default_fixture_loop_scope = "function"
    """,
    "manifest": """
        [A-01]
        state = "done"
        statement = "It adds."
        [A-02]
        state = "planned"
        statement = "It divides."
    """,
}
PROVED = "import pytest\n@pytest.mark.requirement('A-01')\ndef test_sum(): assert 1 + 1 == 2\n"
UNNAMED = "def test_nothing(): ...\n"


def _run(pytester: pytest.Pytester, tests: str, *args: str) -> pytest.RunResult:
    pytester.makepyprojecttoml(PROJECT["pyproject"])
    folder = pytester.mkdir("tests")
    (folder / "requirements.toml").write_text(PROJECT["manifest"])
    (folder / "test_rows.py").write_text(tests)
    return pytester.runpytest_inprocess("-p", "tests.services.manifest", *args)


def test_a_full_run_passes_when_each_done_row_has_a_passing_test(pytester: pytest.Pytester):
    assert _run(pytester, PROVED).ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    "tests",
    [UNNAMED, PROVED.replace("== 2", "== 3"), PROVED.replace("assert", "pytest.skip('no');")],
    ids=["no test", "failing", "skipped"],
)
def test_a_full_run_fails_and_names_the_done_row_without_a_passing_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tests: str
):
    monkeypatch.delenv("TESTS_ALLOW_MISSING", raising=False)
    result = _run(pytester, tests)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["A-01 is done, but no passing test proves it"])


def test_a_run_of_a_part_is_not_held_to_the_manifest(pytester: pytest.Pytester):
    assert _run(pytester, UNNAMED, "tests/test_rows.py").ret == pytest.ExitCode.OK


def test_a_skip_that_was_allowed_is_not_held_against_its_row(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TESTS_ALLOW_MISSING", "1")
    assert _run(pytester, PROVED.replace("assert", "pytest.skip('no');")).ret == pytest.ExitCode.OK


def test_a_test_that_names_an_unknown_row_stops_any_run(pytester: pytest.Pytester):
    result = _run(pytester, PROVED.replace("A-01", "A-99"), "tests/test_rows.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*A-99*"])

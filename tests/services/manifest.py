"""The manifest of requirements, and the plugin that holds a run of the whole suite to it.

A test may only name rows that exist. After a run of everything, each `done` row must have had a passing
test. A run of a part proves nothing about the rest, so it is not held to that.
"""

import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import pytest

DONE, PLANNED = "done", "planned"
_PROPERTY = "requirement"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row: what the service must do and whether it is built."""

    id: str
    state: Literal["done", "planned"]
    statement: str


class ManifestError(Exception):
    """The manifest cannot be read; the message names the row."""


def load(path: Path) -> dict[str, Requirement]:
    """The rows by id, in the order of the file. ManifestError if one is malformed."""
    rows: dict[str, Requirement] = {}
    for id, value in tomllib.loads(path.read_text()).items():
        table = cast(dict[str, object], value) if isinstance(value, dict) else {}
        state, statement = table.get("state"), table.get("statement")
        if state not in (DONE, PLANNED) or not isinstance(statement, str) or not statement.strip():
            raise ManifestError(f"{id} needs a state ({DONE} or {PLANNED}) and a statement")
        rows[id] = Requirement(id, state, statement)
    return rows


def named_by(item: pytest.Item) -> list[str]:
    """The ids that a test says it proves."""
    return [str(id) for marker in item.iter_markers("requirement") for id in marker.args]


@dataclass(slots=True, eq=False)
class Watch:
    """Which rows were proved in this session."""

    rows: dict[str, Requirement]
    whole: bool
    proved: set[str] = field(default_factory=set[str])
    skipped: set[str] = field(default_factory=set[str])
    unproved: list[str] = field(default_factory=list[str])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            ids = named_by(item)
            unknown = [id for id in ids if id not in self.rows]
            if unknown:
                raise pytest.UsageError(f"{item.nodeid} names requirements that are not there: {unknown}")
            # Properties travel with the reports, from worker processes too.
            item.user_properties.extend((_PROPERTY, id) for id in ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = {str(value) for name, value in report.user_properties if name == _PROPERTY}
        if report.when == "call" and report.passed:
            self.proved |= ids
        elif report.skipped:
            self.skipped |= ids

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self.whole or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        excused = self.skipped if os.environ.get("TESTS_ALLOW_MISSING") == "1" else set[str]()
        self.unproved = unproved(self.rows.values(), self.proved | excused)
        if self.unproved:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.unproved:
            terminalreporter.section("requirements without a passing test", sep="=", red=True)
            for id in self.unproved:
                terminalreporter.write_line(f"{id} is done, but no passing test proves it")


def unproved(rows: Iterable[Requirement], proved: set[str]) -> list[str]:
    """The ids of the done rows that are not among the proved."""
    return [row.id for row in rows if row.state == DONE and row.id not in proved]


def runs_everything(config: pytest.Config) -> bool:
    """Whether this session was asked to run the suite as a whole, in one piece."""
    narrowed = ("keyword", "markexpr", "lf", "deselect", "ignore", "ignore_glob", "collectonly", "maxfail")
    return config.args_source is config.ArgsSource.TESTPATHS and not any(
        config.getoption(name, None) for name in narrowed
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.rootpath / "tests" / "requirements.toml"
    is_worker = hasattr(config, "workerinput")
    config.pluginmanager.register(Watch(load(path), runs_everything(config) and not is_worker), "manifest")

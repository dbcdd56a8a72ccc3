"""The pages about events, states and exit codes know all that the program knows, and nothing else."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from lamplighter.cli.output import EXIT_CODES
from lamplighter.domain import event_types
from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.cluster.nodes import NodeState
from lamplighter.domain.event_types import EVENT_TYPES
from lamplighter.domain.events import PRODUCT_FAMILIES
from lamplighter.domain.runs import reasons
from lamplighter.domain.runs.model import ACTIVE, TERMINAL, RunState
from lamplighter.domain.runs.reasons import ENDED, REASONS, UNDER_WAY
from lamplighter.services import table

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lamplighter"
EMITTERS = ("services", "daemon", "app")
TYPE = re.compile(rf"({'|'.join(sorted(PRODUCT_FAMILIES))})\.[a-z_]+")
LOGGING = {"debug", "info", "warning", "error", "exception"}
NO_EVENTS = {
    "city.toml", "config.good", "config.rejected", "config.not_kept", "config.rejection_not_noted", "controller.lock",
    "controller.sock", "run.key", "owner.token", "store.json", "store.url", "beads.json", "run.verify",
    "automation.toml", "agent.mode",
}  # fmt: skip
"""Names of files and keys that look like types of events."""
REASON_OF = {"Ending": 1, "Fail": 0, "CannotRun": 0, "EnrichmentFailed": 0, "Over": 0, "_refuse": 1}
"""The calls that name a reason, and the place of it among their arguments."""


@cache
def trees() -> list[ast.Module]:
    return [
        ast.parse(path.read_text())
        for one in (*EMITTERS, "domain", "adapters")
        for path in (SOURCE / one).rglob("*.py")
    ]


def emitted() -> Iterator[str]:
    for one in EMITTERS:
        for path in (SOURCE / one).rglob("*.py"):
            tree = ast.parse(path.read_text())
            logged = {
                id(argument)
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGGING
                for argument in node.args
            }
            for node in ast.walk(tree):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and id(node) not in logged and TYPE.fullmatch(text):
                    yield text


def test_every_event_that_the_program_emits_is_in_the_table() -> None:
    found = set(emitted()) - set(table.TABLE) - NO_EVENTS
    assert found - set(EVENT_TYPES) == set()


def test_every_event_of_the_table_is_emitted_by_the_program() -> None:
    found = set(emitted()) | {f"node.{state}" for state in NodeState}
    assert set(EVENT_TYPES) - found == set()
    assert list(EVENT_TYPES) == sorted(EVENT_TYPES)


def test_the_pages_say_what_the_tables_say() -> None:
    told = "write them anew: python docs/write_events.py"
    assert (ROOT / "docs/reference/events.md").read_text() == event_types.reference(), told
    assert (ROOT / "docs/reference/run-states.md").read_text() == reasons.reference(), told


def named_reasons() -> Iterator[str]:
    for tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = REASON_OF.get(name)
            if place is None or len(node.args) <= place:
                continue
            argument = node.args[place]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value


def test_every_reason_that_the_program_gives_is_in_the_table() -> None:
    known = {reason for of in REASONS.values() for reason in of}
    assert set(named_reasons()) - known == set()
    assert {one.value for one in SkipReason} == set(REASONS[RunState.SKIPPED])


def test_every_state_has_its_line() -> None:
    assert set(UNDER_WAY) == ACTIVE
    assert set(ENDED) == set(REASONS) == TERMINAL


@pytest.mark.parametrize("code", [0, *EXIT_CODES.values(), 130])
def test_every_exit_code_is_on_its_page(code: int) -> None:
    page = (ROOT / "docs/reference/exit-codes.md").read_text()
    assert re.search(rf"^\| {code} \|", page, re.MULTILINE)


def test_the_events_on_record_have_only_keys_of_the_table() -> None:
    seen = 0
    for path in (ROOT / "tests" / "golden" / "ways").glob("*.json"):
        for event in json.loads(path.read_text())["bus"]:
            told = EVENT_TYPES[event["type"]].payload
            if event["payload"] and "…" not in told:
                seen += 1
                assert set(event["payload"]) - set(told) == set(), event
    assert seen


def test_goldens_hold_only_events_of_the_table() -> None:
    seen = 0
    for path in (ROOT / "tests" / "golden").rglob("*"):
        if path.suffix not in {".json", ".txt", ".jsonl"}:
            continue
        for found in re.findall(r'"type": "([a-z_]+\.[a-z_]+)"', path.read_text()):
            if found.partition(".")[0] in PRODUCT_FAMILIES:
                seen += 1
                assert found in EVENT_TYPES, path
    assert seen

"""Every table has its rule of retention, and records go with those they belong to."""

from dataclasses import fields
from datetime import timedelta

import pytest
from automation_city import City

from lamplighter.domain.city.sections import Retention
from lamplighter.domain.sessions.crashes import SessionHistory
from lamplighter.domain.sessions.model import SessionName
from lamplighter.services import retention, sessions
from lamplighter.services.retention import RETENTION, ByAge, Kept, With, pause
from lamplighter.store.agents import AgentStart
from lamplighter.store.sessions import SessionEnd, SessionRow

TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgres": "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()",
}
MAYOR = SessionName("gc-town-mayor")


def test_every_table_of_the_schema_has_a_rule_and_every_rule_a_table(city: City) -> None:
    found = city.read(lambda tx: tx.db.rows(TABLES[tx.db.dialect.name], {}))
    assert {row["name"] for row in found if not row["name"].startswith("sqlite_")} == set(RETENTION)


def test_every_rule_leads_to_an_age_or_to_a_reason_and_every_setting_is_used() -> None:
    settings = {field.name for field in fields(Retention)}
    used = {rule.setting for rule in RETENTION.values() if isinstance(rule, ByAge)}
    assert used == settings - {"worktrees_mb"}, "that one is a size, not an age"
    for table, rule in RETENTION.items():
        seen = [table]
        while isinstance(rule, With):
            assert rule.table not in seen
            seen.append(rule.table)
            rule = RETENTION[rule.table]  # noqa: PLW2901  it follows the chain to its end
        assert isinstance(rule, ByAge) or (isinstance(rule, Kept) and rule.reason)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, timedelta(hours=1)),
        ({"outbox": timedelta(minutes=2)}, timedelta(seconds=12)),
        ({"runs": timedelta(seconds=2), "events": timedelta(0)}, timedelta(seconds=1)),
    ],
)
def test_a_pass_comes_at_least_every_tenth_of_the_shortest_span(
    settings: dict[str, timedelta], expected: timedelta
) -> None:
    assert pause(Retention(**settings)) == expected
    forever = Retention(**{field.name: timedelta(0) for field in fields(Retention)})
    assert pause(forever) == timedelta(hours=1)


def test_the_sessions_of_a_run_go_with_their_run_and_not_before(city: City) -> None:
    city.add("a", gate="cooldown", interval="1h")
    (run,) = city.tick().fired
    now = city.clock.now()
    city.run(lambda tx: tx.sessions.add(SessionRow("ses_1", "n", None, run, "subprocess", "here", 1, now)))
    city.run(lambda tx: tx.sessions.end("ses_1", SessionEnd(now, "over", 0)))
    insert = "INSERT INTO session_events SELECT city_id, id, 1, 0, 'text', '{}' FROM sessions WHERE id = 'ses_1'"
    city.run(lambda tx: tx.db.execute(insert, {}))
    city.finish(run)
    city.advance(days=40)
    city.run(sessions.prune, before=city.clock.now() - timedelta(days=30))
    assert city.read(lambda tx: tx.sessions.get("ses_1")) is not None
    assert city.run(retention.prune_runs, before=city.clock.now() - timedelta(days=30)) == 1
    assert city.read(lambda tx: tx.sessions.get("ses_1")) is None
    assert city.read(lambda tx: tx.db.rows("SELECT 1 FROM session_events", {})) == []


def test_what_was_noted_about_a_session_goes_with_its_last_start(city: City) -> None:
    now = city.clock.now()
    city.run(lambda tx: tx.agents.add(AgentStart("ast_1", MAYOR, "mayor", "ses_1", now, "wanted")))
    city.run(lambda tx: tx.agents.end(MAYOR, now, wished=False, exit_status=1, reason="crashed"))
    city.run(lambda tx: tx.agents.note(MAYOR, SessionHistory((), "ses_1", now)))
    city.run(sessions.prune, before=now - timedelta(days=1))
    assert city.read(lambda tx: tx.agents.remembered(now - timedelta(days=9))).histories[MAYOR].crash_noted == "ses_1"
    city.run(sessions.prune, before=now + timedelta(days=1))
    assert city.read(lambda tx: tx.agents.remembered(now - timedelta(days=9))).histories == {}

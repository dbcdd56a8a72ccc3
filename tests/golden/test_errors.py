"""What `--json` puts on standard error: each kind of refusal, from each noun that can refuse."""

from pathlib import Path

import golden_files
import pytest
from golden_city import GoldenCity, a_city
from lamp_program import here

NOWHERE = "run_" + "0" * 26
USAGE = {
    "unknown-command": ("nonsense",),
    "unknown-option": ("event", "list", "--nonsense"),
    "missing-argument": ("bead", "show"),
    "number-out-of-range": ("event", "list", "--limit", "0"),
    "payload-not-json": ("event", "emit", "a.b", "--payload", "{"),
    "event-type": ("event", "emit", "Not A Type"),
    "no-such-time": ("event", "list", "--since", "soon"),
    "config-key": ("config", "explain"),
    "nothing-to-change": ("automation", "edit", "sweep"),
    "completion-without-run": ("run", "complete", "--outcome", "succeeded"),
    "completion-outcome": ("run", "complete", NOWHERE, "--outcome", "splendid"),
    "bad-schedule": ("automation", "create", "late", "--exec", "true", "--cron", "61 * * * *"),
    "empty-mail": ("mail", "send", "mayor"),
    "environment-of-a-configuration": ("configuration", "create", "x", "--env", "NAME"),
}
NOT_FOUND = {
    "agent": ("agent", "show", "nobody"),
    "automation": ("automation", "show", "nothing"),
    "bead": ("bead", "show", "to-404"),
    "configuration": ("configuration", "show", "nothing"),
    "formula": ("formula", "show", "nothing"),
    "mail": ("mail", "read", "to-404"),
    "rig": ("rig", "suspend", "nowhere"),
    "run": ("run", "show", NOWHERE),
    "session": ("session", "show", "nothing"),
    "template": ("automation", "create", "--template", "nothing"),
}
CONFLICT = {
    "automation-exists": ("automation", "create", "sweep", "--exec", "true", "--manual"),
    "automation-of-a-file": ("automation", "delete", "sweep"),
    "configuration-of-a-file": ("configuration", "delete", "site"),
    "configuration-exists": ("configuration", "create", "site"),
    "no-controller": ("agent", "restart", "mayor"),
    "no-session": ("agent", "nudge", "mayor", "hello"),
}
OF_LIBRARIES = (
    "usage-unknown-option", "usage-missing-argument", "usage-number-out-of-range", "usage-completion-outcome",
    "usage-payload-not-json",
)  # fmt: skip
"""Whose details are worded by the libraries for commands and JSON, and differ between their versions."""


@pytest.mark.timeout(600)
def test_errors_are_as_on_record(tmp_path: Path) -> None:
    with a_city(tmp_path) as city:
        city.commands.clear()
        for kind, cases in (("usage", USAGE), ("not_found", NOT_FOUND), ("conflict", CONFLICT)):
            for name, words in cases.items():
                refuse(city, kind, name, *words)
        refuse_what_was_done_already(city)
        refuse_a_token(city)
        refuse_what_cannot_be_read(city)
    for name in OF_LIBRARIES:
        city.commands[name]["err"]["detail"] = "<text>"
    golden_files.check("errors", city.commands)


def refuse(city: GoldenCity, kind: str, name: str, *words: str) -> None:
    said = city.call(*words)
    assert said.problem["type"] == kind, said
    city.keep(f"{kind}-{name}", said)


def refuse_what_was_done_already(city: GoldenCity) -> None:
    bead = city.json("bead", "create", "Fetch oil")["id"]
    city.json("bead", "claim", bead, "--assignee", "ann")
    refuse(city, "conflict", "bead-claimed", "bead", "claim", bead, "--assignee", "ben")
    run = city.json("automation", "run", "sweep")["id"]
    refuse(city, "conflict", "run-ended", "run", "cancel", run)
    city.json("automation", "suspend", "sweep")
    refuse(city, "conflict", "automation-suspended", "automation", "run", "sweep")


def refuse_a_token(city: GoldenCity) -> None:
    token = city.root / "token"
    token.write_text("lrt_run_1.00\n")
    words = ("run", "complete", NOWHERE, "--outcome", "succeeded")
    city.keep("no-token", city.program(*words, LAMP_RUN_TOKEN_FILE=str(token)))


def refuse_what_cannot_be_read(city: GoldenCity) -> None:
    config = city.root / "city.toml"
    right = config.read_text()
    config.write_text(right.replace("[[agents]]", "[[agnets]]"))
    city.keep("wrong-configuration", city.call("config", "check"))
    config.write_text(right)
    database = city.root / ".gc" / "lamp.db"
    database.rename(city.root / "away.db")
    refuse(city, "unavailable", "database", "bead", "list")
    (city.root / "away.db").rename(database)
    city.keep("not_found-city", here("status", "--json", "--city", str(city.root.parent)))

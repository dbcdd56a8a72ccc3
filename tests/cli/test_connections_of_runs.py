"""The connections that an automation's runs may use: whose tokens its programs get, and whose they never get."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lamp_program import Said, here

TOKENS = {"GH": "ghp_of_the_shop", "OTHER": "ghp_of_another"}
SEEN = "env | grep ^LAMP_CONNECTION_ | sort > $LAMP_CITY/seen; true"

Lamp = Callable[..., Said]


@pytest.fixture
def lamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lamp:
    """A city with two connections that poll by a token, one that asks with `gh`, and one that only signs."""
    town = tmp_path / "town"
    assert here("init", str(town)).code == 0
    with (town / "city.toml").open("a") as file:
        file.write('\n[session]\nprovider = "subprocess"\n')

    def call(*words: str) -> Said:
        return here("--city", str(town), *words)

    for name, value in TOKENS.items():
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{value}\n"))
        assert call("secret", "set", name).code == 0
    polled = ("--provider", "github", "--poll", "--repo", "acme/web")
    assert call("connection", "create", "gh-acme", *polled, "--token-secret", "GH").code == 0
    assert call("connection", "create", "other", *polled, "--token-secret", "OTHER").code == 0
    assert call("connection", "create", "by-gh", *polled).code == 0
    assert call("connection", "create", "hook").code == 0
    monkeypatch.setenv("LAMP_CONNECTION_OTHER_TOKEN", "inherited from who started the city")
    return call


def seen(tmp_path: Path) -> dict[str, str]:
    lines = (tmp_path / "town" / "seen").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def ran(lamp: Lamp, name: str) -> Any:
    return lamp("automation", "run", name, "--wait", "--json").json


def test_a_run_gets_the_token_of_the_connection_it_lists_and_no_other(lamp: Lamp, tmp_path: Path) -> None:
    made = lamp("automation", "create", "tell", "--exec", SEEN, "--manual", "--connection", "gh-acme")
    assert made.code == 0, made.err
    assert ran(lamp, "tell")["state"] == "succeeded"
    assert seen(tmp_path) == {"LAMP_CONNECTION_GH_ACME_TOKEN": TOKENS["GH"]}
    assert lamp("automation", "create", "quiet", "--exec", SEEN, "--manual").code == 0
    assert ran(lamp, "quiet")["state"] == "succeeded"
    assert seen(tmp_path) == {}


def test_what_its_programs_print_of_it_is_masked(lamp: Lamp) -> None:
    told = "echo the token is $LAMP_CONNECTION_GH_ACME_TOKEN"
    assert lamp("automation", "create", "tell", "--exec", told, "--manual", "--connection", "gh-acme").code == 0
    assert ran(lamp, "tell")["output_tail"] == "the token is •••\n"


def test_an_agents_program_gets_it_too(lamp: Lamp, tmp_path: Path) -> None:
    keys = ("--preset", "shell", "--mode", "full_access", "--manual", "--connection", "other")
    made = lamp("automation", "create", "look", "--prompt", SEEN, *keys)
    assert made.code == 0, made.err
    ran(lamp, "look")
    assert seen(tmp_path) == {"LAMP_CONNECTION_OTHER_TOKEN": TOKENS["OTHER"]}


@pytest.mark.parametrize(
    ("more", "names"),
    [((), ["GH_ACME"]), (("--connection", "other"), ["GH_ACME", "OTHER"]), (("--connection", "none"), [])],
)
def test_those_of_its_triggers_are_among_them_unless_it_wants_none(
    lamp: Lamp, tmp_path: Path, more: tuple[str, ...], names: list[str]
) -> None:
    made = lamp("automation", "create", "tell", "--exec", SEEN, "--webhook", "gh-acme", *more)
    assert made.code == 0, made.err
    assert ran(lamp, "tell")["state"] == "succeeded"
    assert list(seen(tmp_path)) == [f"LAMP_CONNECTION_{name}_TOKEN" for name in names]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gh-acm", "there is no connection `gh-acm`; did you mean `gh-acme`?"),
        ("hook", "`hook` has nothing that a run could use: it has only the secret that its sender signs with"),
        ("by-gh", "`by-gh` has nothing that a run could use: it asks with the login of `gh`"),
    ],
)
def test_a_connection_that_gives_a_run_nothing_is_refused_with_the_reason(lamp: Lamp, name: str, why: str) -> None:
    refused = lamp("automation", "create", "tell", "--exec", "true", "--manual", "--connection", name)
    assert refused.code == 2
    assert why in refused.err
    assert lamp("automation", "show", "tell").code == 3


def test_two_that_would_be_one_variable_are_refused(lamp: Lamp) -> None:
    polled = ("--provider", "github", "--poll", "--repo", "acme/web", "--token-secret", "GH")
    assert lamp("connection", "create", "gh_acme", *polled).code == 0
    both = ("--connection", "gh-acme", "--connection", "gh_acme")
    refused = lamp("automation", "create", "tell", "--exec", "true", "--manual", *both)
    assert "would be the same variable" in refused.err


@pytest.mark.parametrize("action", [("--formula", "build"), ("--prompt", "p", "--agent", "mayor")])
def test_what_starts_no_program_takes_none(lamp: Lamp, action: tuple[str, ...]) -> None:
    refused = lamp("automation", "create", "tell", *action, "--manual", "--connection", "gh-acme")
    assert refused.code == 2
    assert "connections: goes with" in refused.err


def test_it_is_shown_edited_exported_and_imported(lamp: Lamp, tmp_path: Path) -> None:
    assert lamp("automation", "create", "tell", "--exec", SEEN, "--manual", "--connection", "gh-acme").code == 0
    shown = lamp("automation", "show", "tell", "--json").json
    assert shown["policies"]["connections"] == ["gh-acme"]
    assert "get the tokens of the connections gh-acme" in lamp("automation", "show", "tell").out
    exported = lamp("automation", "export", "tell").out
    assert 'connections = ["gh-acme"]' in exported
    assert lamp("automation", "edit", "tell", "--connection", "none").code == 0
    assert "connections = []" in lamp("automation", "export", "tell").out
    assert lamp("automation", "show", "tell", "--json").json["policies"]["connections"] == []
    file = tmp_path / "again" / "automation.toml"
    file.parent.mkdir()
    file.write_text(exported)
    assert lamp("automation", "import", str(file), "--name", "again").code == 0
    assert lamp("automation", "show", "again", "--json").json["policies"]["connections"] == ["gh-acme"]


def test_a_connection_in_use_is_not_deleted_and_says_who_uses_it(lamp: Lamp) -> None:
    assert lamp("automation", "create", "tell", "--exec", "true", "--manual", "--connection", "gh-acme").code == 0
    assert lamp("automation", "create", "gh-acme", "--exec", "true", "--manual").code == 0  # only named so
    refused = lamp("connection", "delete", "gh-acme", "--json")
    assert refused.code == 4
    assert refused.problem["detail"] == "Connection `gh-acme` is used by tell."
    assert lamp("connection", "show", "gh-acme", "--json").json["used_by"] == ["tell"]
    assert lamp("automation", "edit", "tell", "--connection", "other").code == 0
    assert lamp("connection", "delete", "gh-acme").code == 0


def test_a_token_that_is_gone_fails_the_run_that_lists_it_and_is_left_out_of_others(lamp: Lamp, tmp_path: Path) -> None:
    assert lamp("automation", "create", "listed", "--exec", SEEN, "--manual", "--connection", "gh-acme").code == 0
    assert lamp("automation", "create", "waits", "--exec", SEEN, "--webhook", "gh-acme").code == 0
    assert lamp("secret", "delete", "GH").code == 0
    failed = ran(lamp, "listed")
    assert (failed["state"], failed["reason"]) == ("failed", "secret_missing")
    assert ran(lamp, "waits")["state"] == "succeeded"
    assert seen(tmp_path) == {}


def test_a_command_within_a_run_takes_the_token_for_no_mistyped_setting(lamp: Lamp) -> None:
    checked = lamp("config", "check")
    assert checked.code == 0
    assert "has no effect" not in checked.out + checked.err


def test_no_connection_is_called_none(lamp: Lamp) -> None:
    refused = lamp("connection", "create", "none")
    assert refused.code == 2
    both = lamp("automation", "create", "x", "--exec", "true", "--connection", "none", "--connection", "other")
    assert (both.code, "goes without others" in both.err) == (2, True)
    assert json.loads(lamp("automation", "list", "--json").out) == []

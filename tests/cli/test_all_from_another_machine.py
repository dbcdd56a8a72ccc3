"""Every command that has a route, asked of a city by its directory and by its address: the same happens."""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import test_from_another_machine as others
from lamp_program import Said, here, lamp, until
from test_from_another_machine import OF_NO_CITY, address, commands

from lamplighter.cli.base import ONLY_HERE
from lamplighter.cli.main import root

CITY = """
[workspace]
name = "town"

[api]
port = 0

[session]
provider = "subprocess"

[[rigs]]
name = "shop"
path = "project"

[[agents]]
name = "lighter"
start_command = "sleep 600"
suspended = true
"""
FILE = '[automation]\nexec = "true"\ngate = "manual"\n'

Lines = Callable[..., Said]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("all") / "town"
    assert here("init", str(place)).code == 0
    (place / "city.toml").write_text(CITY)
    (place / "project").mkdir()
    (place / "tab").write_text("0 3 * * * make tidy\n")
    (place / "automation.toml").write_text(FILE)
    try:
        assert lamp("daemon", "start", cwd=place).code == 0
        yield place
    finally:
        assert here("stop", "--city", str(place)).code == 0


class Asker:
    """Asks a city; `name` tells what belongs to this way of asking."""

    def __init__(self, name: str, where: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self._where, self._patch = name, where, monkeypatch

    def __call__(self, line: str, *more: str, code: int = 0, stdin: str = "") -> Said:
        """The command's answer; it must end with that code."""
        self._patch.setattr("sys.stdin", io.StringIO(stdin))
        said = here(*line.split(), *more, *self._where)
        assert said.code == code, (line, said)
        return said

    def json(self, line: str, *more: str, **given: Any) -> Any:
        return self(line, *more, "--json", **given).json


@pytest.fixture(params=["here", "there"])
def at(request: pytest.FixtureRequest, town: Path, monkeypatch: pytest.MonkeyPatch) -> Asker:
    where = ["--city", str(town)]
    if request.param == "there":
        where = ["--url", address(town), "--token-file", str(town / ".gc/owner.token")]
    return Asker(request.param, where, monkeypatch)


def failed(at: Asker, name: str) -> str:
    """A run that failed, of a new automation."""
    at(f"automation create {name} --manual --exec", "exit 1")
    at(f"automation run {name} --wait", code=1)
    return str(at.json(f"run show last:{name}")["id"])


def test_the_inbox(at: Asker) -> None:
    name = f"inbox-{at.name}"
    failed(at, name)
    (item,) = [one["id"] for one in at.json("inbox list") if one["subject"] == name]
    assert at.json(f"inbox show {item}")["count"] == 1
    assert "Claimed" in at(f"inbox claim {item}").out
    at(f"inbox unclaim {item}")
    at(f"inbox see {item}")
    at("inbox see-all")
    at("inbox look")
    at(f"inbox snooze {item} 1h")
    at(f"inbox unsnooze {item}")
    at(f"inbox answer {item} yes", code=4)
    at(f"inbox approve {item}", code=4)
    at(f"inbox amend {item} more", code=4)
    at(f"inbox reject {item}", code=4)
    assert "Dismissed" in at(f"inbox dismiss {item} --reason flaky").out
    at(f"inbox reopen {item}")
    at(f"inbox retry {item}")
    at(f"inbox resolve {item} --outcome succeeded", code=4)  # it was retried
    failed(at, f"{name}-too")
    (other,) = [one["id"] for one in at.json("inbox list") if one["subject"] == f"{name}-too"]
    at(f"inbox resolve {other} --outcome succeeded")


def test_runs_by_hand(at: Asker) -> None:
    name = f"hand-{at.name}"
    run = failed(at, name)
    assert "started by hand" in at(f"run explain {run}").out
    at(f"run inputs {run}")
    for verb in ("diff", "apply", "discard"):
        at(f"run {verb} {run}", code=3)
    at(f"run claim {run}")
    at(f"run unclaim {run}")
    at(f"run answer {run} yes", code=4)
    at(f"run approve {run}", code=4)
    at(f"run amend {run} more", code=4)
    at(f"run reject {run}", code=4)
    at(f"run give {run}", code=4)
    at(f"run complete {run} --outcome succeeded --summary Lit", code=4)
    at(f"run ask {run} --question", "What now?", code=4)
    again = at.json(f"run retry {run}")["id"]
    assert again != run
    at("run watch", again, code=1)
    assert at.json(f"run resolve {run} --outcome succeeded --reason fixed")["state"] == "succeeded"


def working(at: Asker, name: str) -> str:
    at(f"automation create {name} --manual --preset shell --mode full_access --prompt", "sleep 600")
    run = str(at.json(f"automation run {name}")["id"])
    until(lambda: at.json(f"run list --query automation:{name}")[0]["state"] == "running")
    return run


def test_an_agent_s_run_is_completed_and_asked_for(at: Asker) -> None:
    run = working(at, f"completes-{at.name}")
    done = f"run complete {run} --outcome succeeded --summary Lit --citation lamp.txt --diff-ref main"
    assert at.json(done)["state"] == "succeeded"
    assert "was already recorded" in at(done).out
    shown = at.json(f"run show {run}")
    assert (shown["state"], shown["summary"]) == ("succeeded", "Lit")
    asks = working(at, f"asks-{at.name}")
    line = f"run ask {asks} --choice oil --choice gas --without-answer dark --question"
    assert at.json(line, "Which lamps?")["state"] == "needs_human"
    assert "was already asked" in at(line, "Which lamps?").out
    question = at.json(f"run show {asks}")["question"]
    assert (question["text"], question["choices"], question["without_answer"]) == (
        "Which lamps?", ["oil", "gas"], "dark",
    )  # fmt: skip
    at(f"run answer {asks} oil")


def test_automations(at: Asker, town: Path) -> None:
    name = f"all-{at.name}"
    at("automation preview tidy --exec true --daily 03:00")
    at("automation templates")
    at(f"automation create {name} --manual --exec true")
    at(f"automation next {name}")
    at(f"automation test {name}")
    at(f"automation explain {name}")
    at(f"automation history {name}")
    at(f"automation strip {name}")
    at(f"automation notes {name}")
    at(f"automation read-notes {name}")
    at(f"automation cursor {name}")
    at(f"automation pin {name}")
    assert name in at("automation pins").out
    at(f"automation unpin {name}")
    at(f"automation suspend {name}")
    at(f"automation resume {name}")
    at(f"automation disable {name}")
    at(f"automation enable {name}")
    assert 'exec = "true"' in at(f"automation export {name}").out
    at(f"automation import --name imported-{at.name}", str(town / "automation.toml"))
    assert at.json(f"automation show imported-{at.name}")["enabled"]
    at("import cron", str(town / "tab"))
    assert name in at(f"find {name}").out


def test_what_comes_in_and_what_is_kept_secret(at: Asker) -> None:
    name, key = f"ci-{at.name}", f"KEY_{at.name}"
    at(f"secret set {key}", stdin="a value\n")
    assert key in [one["name"] for one in at.json("secret list")]
    at(f"secret delete {key}")
    at("secret rotate-key")
    at(f"connection create {name} --provider bearer")
    assert name in [one["name"] for one in at.json("connection list")]
    at(f"connection show {name}")
    at(f"connection rotate {name}")
    assert "202" in at(f"connection test {name}").out
    delivery = at.json("delivery list")[0]["id"]
    assert at.json(f"delivery show {delivery}")["connection"] == name
    at(f"delivery replay {delivery}")
    at(f"connection delete {name}")
    at(f"connection show {name}", code=3)


def test_many_runs_at_once(at: Asker) -> None:
    name = f"many-{at.name}"
    run = failed(at, name)
    at("bulk preview retry --query", f"automation:{name} state:failed")
    made = at.json("bulk create retry --query", f"automation:{name} state:failed")["id"]
    until(lambda: at.json(f"bulk show {made}")["state"] == "done")
    assert [one["run"] for one in at.json(f"bulk results {made}")] == [run]
    at(f"bulk abort {made}", code=4)
    assert made in [one["id"] for one in at.json("bulk list")]
    at(f"view save mine-{at.name} --query state:failed")
    assert f"mine-{at.name}" in [one["name"] for one in at.json("view list")]
    at(f"view delete mine-{at.name}")


def test_agents_and_sessions(at: Asker) -> None:
    at("agent drain-check lighter", code=1)
    at("agent logs lighter")
    at("agent peek lighter")
    assert "suspended" in at("agent explain lighter").out
    at("agent drain-ack lighter", code=4)
    at("agent request-restart lighter", code=4)
    at("agent drain lighter", code=4)
    at("agent undrain lighter", code=4)
    at("agent restart lighter", code=4)
    at("agent kill lighter", code=4)
    at("agent unquarantine lighter")
    at("agent let-go lighter")
    at("agent take-over lighter nobody", code=3)
    at("agent resume lighter")
    until(lambda: at.json("agent show lighter")["state"] == "running")
    session = at.json("agent show lighter")["session"]
    at("agent suspend lighter")
    assert session
    (shown, *_) = [one["id"] for one in at.json("session list --all") if one["agent"] == "lighter"]
    at(f"session show {shown}")
    at(f"session logs {shown}")
    at(f"session send {shown} hello", code=4)
    at("session adopt hello --preset shell --id none --mode plan --directory /nowhere", code=2)
    at(f"session subscribe {shown} --to nobody", code=3)
    at("session subscriptions")
    at(f"session unsubscribe {shown} --to nobody")
    at("rig suspend shop")
    at("rig resume shop")


def test_the_rest(at: Asker) -> None:
    name = f"shop-{at.name}"
    at(f"configuration create {name} --preset claude")
    assert at.json(f"configuration edit {name} --model opus")["model"] == "opus"
    at(f"configuration delete {name}")
    bead = at.json("bead create", "Oil")["id"]
    assert at.json(f"bead label {bead} oil")["labels"] == ["oil"]
    at("formula show nothing", code=3)
    at("formula cook nothing", code=3)
    at("login check")
    at("notify rules")
    at("notify test nobody", code=3)
    at("outbox retry nothing", code=3)
    at("member list")
    at("worktree clean")
    at("slack list")
    at("slack manifest")
    at("slack install", code=2)
    at("slack test T1", code=3)
    at("slack remove T1", code=3)
    at("slack link none", code=4)


def test_the_organization(at: Asker) -> None:
    at("org show")
    at("org invite")
    at(f"org rename lanterns-{at.name}")
    at("org leave --yes", code=4)
    at("org home nobody", code=3)
    at("org remove nobody", code=3)
    at("org join --yes", code=2)
    assert "holds" in at("org join --yes", code=1, stdin="lamp_stale").err


def test_what_files_and_screens_have(at: Asker) -> None:
    at("automation source tidy-not-there", code=3)
    at("agent question lighter")
    at("agent answer lighter 1", code=4)
    at("slack who none", code=4)


def test_every_command_is_asked_in_both_ways_here_or_in_the_module_beside() -> None:
    texts = "".join(Path(str(one)).read_text(encoding="utf-8") for one in (__file__, others.__file__))
    asked = {"agent show", "session list"}  # in a loop of the module beside, too
    missing = []
    for path, _ in commands(root):
        name = " ".join(path)
        if ONLY_HERE.get(path[0]) or ONLY_HERE.get(name) or path[0] in OF_NO_CITY or name in asked:
            continue
        spoken = name.replace("run diff", "run {verb}").replace("run apply", "run {verb}")
        spoken = spoken.replace("run discard", "run {verb}")
        if not re.search(rf'["(]f?"?{re.escape(spoken)}[ "]', texts):
            missing.append(name)
    assert missing == [], "asked nowhere"


def test_the_answers_are_json(at: Asker) -> None:
    assert isinstance(json.loads(at("status --json").out), dict)

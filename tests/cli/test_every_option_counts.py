"""Each option of each command has an effect or is refused: its command is given with it and without it, in one city.

That an option is read is no effect: what the two commands answer, or leave behind, must differ. What only a running
process shows has its test elsewhere, which names the option. A new option needs its case here.
"""

import contextlib
import itertools
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from lamp_program import ENVIRONMENT, Said, here, lamp, until
from option_cases import ACTIONS, ELSEWHERE, HERE, PAIRS, RUNS

from lamplighter.app.settings import Settings
from lamplighter.app.wiring import open_city
from lamplighter.cli.main import root
from lamplighter.domain.delivery.outbox import Item, ItemKind
from lamplighter.services import rollups
from lamplighter.services.deliveries.receiving import keep
from lamplighter.store.deliveries import DeliveryRow
from lamplighter.store.tx import Tx
from lamplighter.testing.slack_server import slack_server

sys.path.append(str(Path(__file__).parent.parent / "golden"))
from golden_masking import masked

TESTS = Path(__file__).parent.parent
SHARED = {"--city", "--json", "--url", "--context", "--token", "--token-file"}
"""Options of every command; tests/cli/test_commands.py and test_from_another_machine.py show those."""
CITY = """
[workspace]
name = "town"
timezone = "UTC"
[api]
public_url = "https://town.example"
[session]
provider = "subprocess"
[[rigs]]
name = "web"
path = "web"
formulas_dir = "web/formulas"
[[agents]]
name = "mayor"
start_command = "sleep 600"
[[agents]]
name = "coder"
dir = "web"
start_command = "sleep 600"
suspended = true
[[configurations]]
name = "site"
description = "The web site."
preset = "claude"
[[configurations]]
name = "shop"
description = "The shop."
preset = "codex"
[[notifications.destinations]]
name = "desk"
kind = "command"
command = "cat"
"""


def _cron(schedule: str) -> str:
    return f'[automation]\ngate = "cron"\nschedule = "{schedule}"\nexec = "true"\n'


FILES = {
    ".gc/formulas/lamps.formula.toml": 'formula = "lamps"\ndescription = "In {{street}}."\n'
    '[vars.street]\ndefault = "north"\n'
    '[[steps]]\nid = "light"\ntitle = "Light {{street}}"\n',
    ".gc/formulas/automations/daily/automation.toml": _cron("0 3 * * *"),
    ".gc/formulas/automations/often/automation.toml": _cron("* * * * *"),
    ".gc/formulas/automations/leap/automation.toml": _cron("0 3 29 2 *"),
    ".gc/formulas/automations/broken/automation.toml": '[automation]\ngate = "never-heard-of"\n',
    ".gc/formulas/automations/broken2/automation.toml": '[automation]\ngate = "never-heard-of"\n',
    "web/formulas/automations/webbed/automation.toml": _cron("0 3 * * *"),
    "crontab": "3 3 * * * root true\n",
    ".gc/formulas/automations/fail/automation.toml": '[automation]\ngate = "manual"\nexec = "exit 3"\n',
    ".gc/formulas/automations/fail2/automation.toml": '[automation]\ngate = "manual"\nexec = "exit 4"\n',
    ".gc/formulas/automations/noted/automation.toml": '[automation]\ngate = "manual"\nexec = "true"\n',
    "web/formulas/webbed.formula.toml": 'formula = "webbed"\n[[steps]]\nid = "a"\ntitle = "A"\n',
}


NUMBER = re.compile(r"\d+")


class Option(NamedTuple):
    command: str
    flag: str

    def __str__(self) -> str:
        return f"{self.command} {self.flag}"


def options(group: click.Group, *path: str) -> Iterator[Option]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from options(command, *path, name)
        elif command is not None:
            for one in command.params:
                if isinstance(one, click.Option) and not SHARED & set(one.opts):
                    yield Option(" ".join((*path, name)), one.opts[0])


EVERY = sorted(set(options(root)))
DESCRIBE = ("automation create", "automation edit", "automation preview")
"""These take the options that describe an automation."""


@dataclass
class Town:
    root: Path
    facts: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    asked: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def answers(self, *lines: str) -> Any:
        """What the last of the commands answers, with a name `{n}` that no other call has; ids and times are masked."""
        name = f"n{next(self.numbers):04}x"
        said = Said(0, "", "")
        for line in lines:
            said = self.call(line, name)
        plain = lines[-1].startswith("! ")
        found = NUMBER.sub("#", said.out).splitlines() if plain else parsed(said.out)
        if isinstance(found, dict):
            found = {key: "<secret>" if key in {"secret", "token", "ending"} else one for key, one in found.items()}
        texts = {name: "<name>", str(self.root): "<city>"}
        return masked({"code": said.code, "out": found, "err": said.err.splitlines()}, texts)

    def usual(self, *lines: str) -> Any:
        """The same, asked once: what a command answers without the option."""
        if lines not in self.asked:
            self.asked[lines] = self.answers(*lines)
        return self.asked[lines]

    def call(self, line: str, name: str = "") -> Said:
        words, _, given = line.partition(" <<< ")
        filled = [word.format(n=name, **self.facts) if "{" in word else word for word in shlex.split(words)]
        with _standard_input(given):
            plain = filled[:1] == ["!"]  # as a person sees it
            return here(*(filled[1:] if plain else [*filled, "--json"]), "--city", str(self.root))

    def made(self, line: str) -> Any:
        said = self.call(line)
        assert said.code == 0, (line, said)
        return said.json


def parsed(text: str) -> Any:
    """JSON, or an object a line, or lines of text."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) if line.startswith("{") else line for line in text.splitlines()]


@contextlib.contextmanager
def _standard_input(text: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, StringIO(text)
    try:
        yield
    finally:
        sys.stdin = before


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    base = tmp_path_factory.mktemp("options")
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("HOME", str(base / "home"))
        patch.setenv("XDG_CONFIG_HOME", str(base / "home" / "config"))
        for name in ("LAMP_CITY", "LAMP_RUN_ID", "LAMP_SESSION_ID", "GC_CITY"):
            patch.delenv(name, raising=False)
        patch.setenv("LAMP_SLACK_API_URL", stack.enter_context(slack_server()).api)
        found = Town(base / "town")
        (base / "home").mkdir()
        assert here("init", str(found.root)).code == 0
        (found.root / "city.toml").write_text(CITY)
        for path, text in FILES.items():
            (found.root / path).parent.mkdir(parents=True, exist_ok=True)
            (found.root / path).write_text(text)
        furnish(found)
        yield found


def furnish(town: Town) -> None:
    """Two of everything that lists show."""
    facts = town.facts
    facts["root"] = str(town.root)
    for number in (1, 2, 3, 4):
        (town.root / f"place{number}").mkdir()
    town.call("automation run fail2")
    _waiting(town)
    for number in (1, 2):
        facts["run"] = town.made("automation run noted")["id"]
        facts[f"failed{number}"] = town.call("automation run fail").json["id"]
        facts["bead"] = town.made(f"bead create Work{number} --assignee mayor --label lit --type bug")["id"]
        town.made(f"event emit lamp.lit{number} --subject lamp{number}")
        town.made(f"mail send mayor Hello{number} --from ann")
        town.made(f"connection create hub{number} --provider github")
        facts[f"delivery{number}"] = _taken(town, number)
        town.call("notify test desk")
        town.made(f"member add member{number}@example.org")
        town.made(f"token create token{number}")
        facts["bulk"] = town.made(f"bulk create claim {facts['failed1']} {facts['run']}")["id"]
    for name in ("free1", "free2"):
        facts[name] = town.made("bead create Free")["id"]
    facts["needy"] = town.made("bead create Needy --needs {bead}")["id"]
    town.made("bead create Other --type task --assignee coder")
    town.made("secret set token <<< sesame-sesame")
    town.made("automation create stored --exec true --manual")
    town.made("automation create rigged --exec true --manual --rig web")
    town.made("automation notes noted --text First --version 0")
    town.made("automation notes noted --text Second --version 1")
    town.made("automation cursor noted --set 5 --expect '' --type integer")
    newest = {
        "item": "inbox list", "notice": "notify log", "outbox": "outbox list --state pending", "audit": "audit list",
        "event": "automation history fail",
    }  # fmt: skip
    for name, command in newest.items():
        facts[name] = str(town.made(command)[0]["id"])
    facts["stays"] = next(one["id"] for one in town.made("inbox list") if one["subject"] == "broken")

    _counted(town)


def _counted(town: Town) -> None:
    """Ended runs are counted, as a running city does some minutes after."""
    opened = open_city(Settings(town.root, town.root, "ann", None, {}))
    try:
        opened.store.transact(_count, opened.clock.now() + timedelta(hours=1))
    finally:
        opened.close()


def _count(tx: Tx, now: datetime) -> None:
    while rollups.follow(tx, now=now):
        pass


def _waiting(town: Town) -> None:
    """Two items of the outbox that wait."""
    opened = open_city(Settings(town.root, town.root, "ann", None, {}))
    try:
        for _ in range(2):
            item = Item(opened.ids.make("out"), ItemKind.WRITE_ARTIFACT, {}, opened.clock.now() + timedelta(days=9))
            opened.store.transact(_add, item)
    finally:
        opened.close()


def _add(tx: Tx, item: Item) -> None:
    tx.outbox.add(item)


def _taken(town: Town, number: int) -> str:
    opened = open_city(Settings(town.root, town.root, "ann", None, {}))
    try:
        headers = {"x-github-delivery": f"d-{number}", "x-github-event": "issues"}
        body = '{"action": "opened", "issue": {"number": 12, "title": "The lamp is out"}}'
        row = DeliveryRow(opened.ids.make("dlv"), f"hub{number}", f"d-{number}", headers, body, opened.clock.now())
        return opened.store.transact(keep, row, opened.context()).id
    finally:
        opened.close()


def test_every_option_has_its_case() -> None:
    known = {*PAIRS, *ELSEWHERE} | {f"{command} {flag}" for command in DESCRIBE for flag in ACTIONS}
    assert {str(one) for one in EVERY} - known == set()


def test_no_case_is_of_an_option_that_is_gone() -> None:
    assert {*PAIRS, *ELSEWHERE} - {str(one) for one in EVERY} == set()


@pytest.mark.parametrize("option", sorted(PAIRS))
def test_an_option_makes_a_difference(option: str, town: Town) -> None:
    without, given = PAIRS[option]
    lines = [line if isinstance(line, tuple) else (line,) for line in (without, given)]
    assert any(option.rpartition(" ")[2] in line for line in lines[1])
    first, second = (town.answers(*line) for line in lines)
    assert first != second, f"{option} makes no difference: {first}"


@pytest.mark.parametrize("flag", sorted(ACTIONS))
@pytest.mark.parametrize("command", DESCRIBE)
def test_an_option_that_describes_an_automation_makes_a_difference(command: str, flag: str, town: Town) -> None:
    always, without, given = ACTIONS[flag]
    assert flag in given
    made = f"automation create {{n}} {always} {without}"
    if command == "automation edit":
        first, second = town.usual(made), town.answers(made, f"automation edit {{n}} {given}")
    else:
        first, second = (
            town.usual(f"{command} {{n}} {always} {without}"),
            town.answers(f"{command} {{n}} {always} {given}"),
        )
    assert first["code"] == 0, first
    assert first != second, f"{command} {flag} makes no difference: {first}"


@pytest.mark.parametrize("option", sorted(ELSEWHERE))
def test_what_only_a_process_shows_has_its_test(option: str) -> None:
    text = (TESTS / ELSEWHERE[option]).read_text()
    flag = option.rpartition(" ")[2]
    words = (flag, flag.removeprefix("--").replace("-", "_"))
    assert any(word in text for word in words), f"{ELSEWHERE[option]} says nothing of {option}"
    assert ELSEWHERE[option] not in {HERE, RUNS} or option in text


@pytest.mark.parametrize(
    "line", sorted({one for one, _ in PAIRS.values() if isinstance(one, str) and ("{n}" in one or "! " in one)})
)
def test_what_is_made_twice_is_told_in_the_same_words(line: str, town: Town) -> None:
    """Else a difference would show nothing."""
    assert town.answers(line) == town.answers(line)


def test_a_context_is_in_use_only_where_that_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    add = ("context", "add", "far", "https://town.example", "--token", "lamp_pat_x", "--json")
    assert here(*add).json["in_use"] is False
    assert here("context", "remove", "far").code == 0
    assert here(*add, "--use").json["in_use"] is True, "context add --use"


# ── what only a running city shows ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def lit(tmp_path: Path) -> Iterator[Town]:
    """A city with its daemon and an agent that has spoken three lines."""
    found = Town(tmp_path / "town")
    assert here("init", str(found.root)).code == 0
    (found.root / "city.toml").write_text(
        '[workspace]\nname = "town"\n[session]\nprovider = "subprocess"\n[api]\nport = 0\n'
        '[[agents]]\nname = "mayor"\nstart_command = "seq 3; exec sleep 600"\n'
        '[[agents]]\nname = "clerk"\nstart_command = "exec sleep 600"\n'
    )
    for name, command in {"fail": "exit 3", "noted": "sleep 0.3; echo written"}.items():
        file = found.root / ".gc" / "formulas" / "automations" / name / "automation.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f"[automation]\ngate = 'manual'\nexec = '{command}'\n")
    assert lamp("daemon", "start", cwd=found.root).code == 0
    try:
        until(lambda: found.call("! agent logs mayor").out.split() == ["1", "2", "3"])
        until(lambda: len(found.made("session list")) == 2)
        yield found
    finally:
        assert lamp("stop", cwd=found.root).code == 0


@pytest.mark.timeout(300)
def test_options_of_what_runs_make_a_difference(lit: Town) -> None:
    def lines(command: str) -> list[str]:
        return lit.call(f"! {command}").out.splitlines()

    def ended(command: str) -> int:
        return sum(one["state"] == "ended" for one in lit.made(command))

    session = next(one["id"] for one in lit.made("session list") if one["agent"] == "mayor")
    assert lines("agent logs mayor --lines 1") == ["3"], "agent logs --lines"
    assert lines("agent peek mayor --lines 1") == ["3"], "agent peek --lines"
    assert lines(f"session logs {session} --lines 1") == ["3"], "session logs --lines"
    assert len(lines("daemon logs --lines 1")) == 1 < len(lines("daemon logs")), "daemon logs --lines"
    assert [one["agent"] for one in lit.made("session list --agent clerk")] == ["clerk"], "session list --agent"
    for name in ("clerk", "mayor"):
        lit.made(f"agent kill {name}")
    until(lambda: len(lit.made("agent show mayor")["starts"]) > 1)
    assert len(lit.made("agent show mayor --limit 1")["starts"]) == 1, "agent show --limit"
    until(lambda: ended("session list --all") == 2, lambda: "session list --all")
    assert ended("session list") == 0
    assert ended("session list --all --limit 1") == 1, "session list --limit"
    assert lit.made("automation run noted")["state"] in {"ready", "running"}
    until(lambda: not [one for one in lit.made("run list") if one["state"] in {"ready", "running"}])
    assert lit.call("automation run noted --wait").json["state"] == "succeeded", "automation run --wait"
    assert lit.call("automation run fail --wait").code == 1
    assert lit.call("run retry last:fail --wait").json["state"] == "failed", "run retry --wait"
    assert lit.made("run retry last:fail")["state"] in {"ready", "running"}
    for flag, nudged in (("", 0), ("--notify", 1)):
        lit.made(f"mail send mayor Hi {flag}")
        done = [one["operation"] for one in lit.made("audit list")]
        assert done.count("agent.nudge") == nudged, "mail send --notify"
    before = len(lit.made("agent show mayor")["starts"])
    lit.made("agent request-restart mayor --no-wait")
    until(lambda: len(lit.made("agent show mayor")["starts"]) > before, lambda: "agent request-restart --no-wait")
    assert "did not stop within" in lit.call("daemon restart --within 1ms").err, "daemon restart --within"
    until(lambda: not lit.made("status")["controller"]["running"])
    with _process(lit.root, "start", "--foreground") as stays:
        until(lambda: lit.made("status")["controller"]["pid"] == stays.pid, lambda: "start --foreground")
        until((lit.root / ".gc" / "controller.sock").exists)
        assert "did not stop within" in lit.call("restart --within 1ms").err, "restart --within"
        stays.wait(60)
    for command in ("stop --within 1ms", "daemon stop --within 1ms"):
        assert lamp("daemon", "start", cwd=lit.root).code == 0
        assert "did not stop within" in lit.call(command).err, command
        until(lambda: not lit.made("status")["controller"]["running"])
    assert "within" in lamp("daemon", "start", "--within", "1ms", cwd=lit.root).err, "daemon start --within"
    until(lambda: lit.made("status")["controller"]["running"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", ["agent logs mayor", "daemon logs"])
def test_a_log_that_is_followed_does_not_end(command: str, lit: Town) -> None:
    """agent logs --follow, daemon logs --follow."""
    with _process(lit.root, *command.split(), "--follow") as told:
        assert told.stdout is not None
        told.stdout.readline()
        assert told.poll() is None
        assert lit.call(f"! {command}").code == 0, "without the option it ends"


@contextlib.contextmanager
def _process(root: Path, *words: str) -> "Iterator[subprocess.Popen[str]]":
    line = [sys.executable, "-m", "lamplighter", *words, "--city", str(root)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as made:
        try:
            yield made
        finally:
            made.kill()

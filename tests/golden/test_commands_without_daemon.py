"""What every command answers with `--json` in a city that nobody runs: beside a daemon only where one is needed."""

from pathlib import Path

import golden_files
import pytest
from golden_city import GoldenCity, a_city


@pytest.mark.timeout(600)
def test_commands_answer_as_on_record_without_a_daemon(tmp_path: Path) -> None:
    with a_city(tmp_path) as city:
        look_at_the_city(city)
        work_with_beads(city)
        write_mail_and_events(city)
        keep_configurations(city)
        keep_automations(city)
        run_automations(city)
        keep_rigs(city)
        hold_the_city(city)
        start_and_stop_agents(city)
        install_a_service(city)
    golden_files.check("commands_without_daemon", city.commands)


def look_at_the_city(city: GoldenCity) -> None:
    city.record("init", str(city.root), case="again")
    city.record("version")
    city.record("store migrate")
    city.record("config check")
    city.record("config show")
    city.record("config show", "--provenance", case="provenance")
    city.record("config explain", "daemon")
    city.record("config explain", "--agent", "mayor", case="agent")
    city.record("status")
    city.record("daemon status")
    city.record("doctor")
    city.record("agent list")
    city.record("agent show", "mayor")
    city.record("session list")
    city.record("prime", "mayor")
    city.record("hook", "mayor", case="nothing")
    city.record("formula list")
    city.record("formula show", "feature")


def work_with_beads(city: GoldenCity) -> None:
    whole = city.json("bead", "create", "Lamps", "--type", "epic")
    oil = city.record("bead create", "Fetch oil", "--label", "urgent", "--meta", "shop=corner")
    light = city.record(
        "bead create", "Light it", "--needs", oil["id"], "--parent", whole["id"], "--assignee", "mayor",
        "--description", "All of it.", "--rig", "web", case="with-everything",
    )  # fmt: skip
    city.record("bead list")
    city.record("bead ready")
    city.record("bead show", light["id"])
    city.record("bead claim", oil["id"], "--assignee", "ann")
    city.record("bead update", oil["id"], "--title", "Fetch more oil")
    city.record("bead label", oil["id"], "later", "--remove", "urgent")
    city.record("bead close", oil["id"])
    city.record("hook", "mayor")
    others = [city.json("bead", "create", title)["id"] for title in ("One", "Two")]
    city.record("bead close", *others, case="several")
    city.record("formula cook", "feature", "--var", "what=a lamp", "--label", "pool:coder", "--on", whole["id"])


def write_mail_and_events(city: GoldenCity) -> None:
    sent = city.record("mail send", "mayor", "The oil", "is low.")["sent"][0]["id"]
    city.record("mail inbox", "mayor")
    city.record("mail check", "mayor")
    city.record("mail read", sent)
    other = city.json("mail", "send", "mayor", "Never mind.")["sent"][0]["id"]
    city.record("mail archive", other)
    city.record("mail check", "mayor", case="nothing")
    before = city.last_seq()
    city.record("event emit", "deploy.finished", "--subject", "web", "--message", "Done.", "--payload", '{"ok": true}')
    city.json("event", "emit", "deploy.started", "--actor", "ann")
    city.record("event list", "--type", "deploy.*")
    city.record("event tail", "--after", str(before), "--type", "deploy.*", "--count", "2")


def keep_configurations(city: GoldenCity) -> None:
    city.record(
        "configuration create", "shop", "--description", "The shop.", "--path", str(city.root / "web"),
        "--preset", "codex", "--model", "big", "--mode", "plan", "--env", "SHOP_TOKEN=x",
    )  # fmt: skip
    city.record("configuration list")
    city.record("configuration show", "site")
    city.record("configuration edit", "shop", "--model", "small", "--no-env", "SHOP_TOKEN")
    city.record("configuration delete", "shop")


def keep_automations(city: GoldenCity) -> None:
    city.record("automation templates")
    city.record(
        "automation create", "tidy", "--exec", "make tidy", "--weekly", "sun 04:30", "--timezone", "Europe/Berlin"
    )
    city.record(
        "automation create", "deployed", "--formula", "feature", "--event", "deploy.*", "--retry", "2", "--rig", "web",
        case="with-an-event",
    )  # fmt: skip
    city.record("automation create", "triage", "--template", "issue-triage", "--path", str(city.root / "web"),
                case="from-a-template")  # fmt: skip
    city.record("automation edit", "tidy", "--timeout", "5m", "--description", "Tidies.")
    city.record("automation disable", "tidy")
    city.record("automation enable", "tidy")
    city.record("automation suspend", "tidy")
    city.record("automation explain", "tidy", case="suspended")
    city.record("automation resume", "tidy")
    city.record("automation list")
    city.record("automation show", "leap-day")
    city.record("automation show", "light", case="of-an-agent")
    city.record("automation show", "broken", case="broken")
    city.record("automation check")
    city.record("automation next", "tidy", "--count", "2")
    city.record("automation explain", "leap-day")
    city.record("simulate", "--from", "2104-02-28T00:00:00+00:00", "--days", "8")
    file = city.root / "tidy.toml"
    city.record("automation export", "tidy")
    city.record("automation export", "tidy", "--to", str(file), case="to-a-file")
    city.record("automation import", str(file), "--name", "tidy-again")
    city.record("automation delete", "tidy-again")


def run_automations(city: GoldenCity) -> None:
    """Without a daemon a run is worked by the command that fires it."""
    run = city.record("automation run", "sweep", "--payload", '{"street": "north"}', "--key", "once")
    failed = city.record("automation run", "fail", case="failed")
    city.record("run retry", failed["id"])
    city.record("run show", run["id"])
    city.record("run logs", run["id"])
    city.record("run watch", run["id"])
    city.record("run list")
    city.record("run list", "--state", "failed", "--limit", "1", case="failed")
    city.record("automation history", "sweep")
    city.record("automation explain", "fail", case="after-a-failure")
    city.record("event list", "--type", "automation.*", "--actor", "human", "--limit", "4", case="of-runs")


def keep_rigs(city: GoldenCity) -> None:
    (city.root / "shop").mkdir()
    city.record("rig add", str(city.root / "shop"), "--prefix", "sh")
    city.record("rig suspend", "shop")
    city.record("rig list")
    city.record("rig resume", "shop")
    city.record("rig resume", "shop", case="again")


def hold_the_city(city: GoldenCity) -> None:
    city.record("pause")
    city.record("suspend")
    city.record("status", case="held")
    city.record("resume")
    city.record("resume", case="again")


def start_and_stop_agents(city: GoldenCity) -> None:
    """One agent only: several are started side by side, and told of in the order in which they were."""
    city.record("agent suspend", "web/coder")
    city.record("start", by_program=True)
    city.record("agent list", case="started")
    city.record("restart", by_program=True)
    city.record("stop", by_program=True)
    city.record("stop", by_program=True, case="again")
    city.record("session list", "--all", case="ended")
    city.record("agent resume", "web/coder")


def install_a_service(city: GoldenCity) -> None:
    """A unit is written below the city's own home; no service manager is found on the path."""
    city.record("daemon install", "--print", case="shown")
    city.record("daemon uninstall", case="nothing")
    for command in ("daemon install", "daemon uninstall"):
        city.keep(command, city.program(*command.split(), PATH=city.env["HOME"]))

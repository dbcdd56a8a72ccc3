"""What every command answers with `--json` in a city that nobody runs: beside a daemon only where one is needed."""

import io
import json
from pathlib import Path

import golden_files
import pytest
from golden_city import GoldenCity, a_city

from lamplighter.app.settings import Settings
from lamplighter.app.wiring import open_city
from lamplighter.services.deliveries.receiving import keep
from lamplighter.store.deliveries import DeliveryRow
from lamplighter.testing.slack_server import slack_server
from lamplighter.testing.slack_shapes import BOT_TOKEN, SIGNING_SECRET, TEAM


@pytest.mark.timeout(600)
def test_commands_answer_as_on_record_without_a_daemon(tmp_path: Path) -> None:
    with a_city(tmp_path) as city:
        look_at_the_city(city)
        work_with_beads(city)
        write_mail_and_events(city)
        keep_configurations(city)
        keep_automations(city)
        run_automations(city)
        work_through_the_inbox(city)
        keep_contexts(city)
        keep_rigs(city)
        hold_the_city(city)
        start_and_stop_agents(city)
        install_a_service(city)
        admit_people(city)
        keep_secrets(city)
        take_deliveries(city)
        speak_in_slack(city)
        count_and_keep(city)
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
    city.record("agent explain", "mayor")
    city.record("session list")
    city.record("prime", "mayor")
    city.record("hook", "mayor", case="nothing")
    city.record("formula list")
    city.record("formula show", "feature")


def admit_people(city: GoldenCity) -> None:
    city.record("member add", "ben", "--role", "admin")
    city.record("member role", "ben", "member")
    city.record("member list")
    made = city.json("token", "create", "ci", "--member", "ben", "--scopes", "read", "--expires", "30d")
    city.commands["token-create"] = city.masked(made | {"token": "<secret>", "ending": "<end>"})
    city.commands["token-list"] = city.masked([one | {"ending": "<end>"} for one in city.json("token", "list")])
    city.record("token revoke", made["id"])
    city.record("audit list", "--limit", "2")
    city.record("member remove", "ben")


def keep_secrets(city: GoldenCity) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdin", io.StringIO("open sesame\n"))
        city.json("secret", "set", "DOOR")
        patched.setattr("sys.stdin", io.StringIO("open sesame\n"))
        city.commands["secret-set"] = city.masked(city.json("secret", "set", "GATE") | {"key_id": "<key>"})
    city.commands["secret-list"] = city.masked([one | {"key_id": "<key>"} for one in city.json("secret", "list")])
    city.commands["secret-rotate-key"] = city.json("secret", "rotate-key") | {"key_id": "<key>"}
    city.record("secret delete", "DOOR")
    city.record("secret delete", "DOOR", case="unknown")


def take_deliveries(city: GoldenCity) -> None:
    made = city.json("connection", "create", "gh", "--provider", "github", "--author", "ada")
    city.commands["connection-create"] = city.masked(made | {"secret": "<secret>"})
    delivery = take(city)
    city.record("connection list")
    city.record("connection show", "gh")
    rotated = city.json("connection", "rotate", "gh")
    city.commands["connection-rotate"] = city.masked(rotated | {"secret": "<secret>"})
    city.record("connection test", "gh")
    city.record("delivery list")
    city.record("delivery show", delivery)
    city.record("delivery replay", "last")
    city.record("connection delete", "gh")


def speak_in_slack(city: GoldenCity) -> None:
    with pytest.MonkeyPatch.context() as patched, slack_server() as slack:
        patched.setenv("LAMP_SLACK_API_URL", slack.api)
        city.record("slack manifest")
        given = f"SLACK_BOT_TOKEN={BOT_TOKEN}\nSLACK_SIGNING_SECRET={SIGNING_SECRET}\n"
        patched.setattr("sys.stdin", io.StringIO(given))
        city.record("slack install")
        city.record("slack list")
        city.record("slack test", TEAM)
        city.record("slack who", "NOBODYS", case="unknown")
        city.record("slack link", "NOBODYS", case="unknown")
        city.record("slack remove", TEAM)


def take(city: GoldenCity) -> str:
    """A delivery as the city keeps it; without a daemon nobody listens for one."""
    opened = open_city(Settings(city.root, city.root, "ada", None, {}))
    try:
        body = json.dumps({"action": "opened", "issue": {"number": 12, "title": "The lamp is out"}})
        headers = {"x-github-delivery": "d-1", "x-github-event": "issues"}
        row = DeliveryRow(opened.ids.make("dlv"), "gh", "d-1", headers, body, opened.clock.now())
        return opened.store.transact(keep, row, opened.context()).id
    finally:
        opened.close()


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
        "--set", 'vars={"what": "Lamps"}', case="with-an-event",
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
    city.record("automation preview", "mop", "--exec", "make mop", "--daily", "03:30")
    city.record("automation preview", "mop up", "--cron", "61 * * * *", case="wrong")
    city.record("automation test", "tidy")
    city.record("automation test", "tidy", "--set", "precheck=echo nothing waits; exit 75", case="with-a-precheck")
    city.record("automation source", "tidy", case="of-the-store")
    city.record("automation source", "broken")
    city.record("find", "tid")
    city.record("view save", "broken", "--query", "state:failed since:2d", "--shared")
    city.record("view list")
    city.record("automation pin", "tidy")
    city.record("automation pins")
    city.record("automation unpin", "tidy")
    city.record("view delete", "broken")
    city.record("automation export", "tidy")
    city.record("automation export", "tidy", "--to", str(file), case="to-a-file")
    city.record("automation import", str(file), "--name", "tidy-again")
    city.record("automation delete", "tidy-again")
    city.record("automation cursor", "sweep", case="none")
    city.record("automation cursor", "sweep", "--set", "42", "--expect", "", "--type", "integer")
    city.record("automation cursor", "sweep", "--set", "43", "--expect", "41", case="moved-meanwhile")
    city.record("automation notes", "sweep", case="none")
    city.record("automation notes", "sweep", "--text", "Mind the oil.", "--version", "0")
    city.record("automation read-notes", "sweep")
    city.record("automation notes", "sweep", "--text", "Mind it.", "--version", "0", case="changed-meanwhile")


def run_automations(city: GoldenCity) -> None:
    """Without a daemon a run is worked by the command that fires it."""
    run = city.record("automation run", "sweep", "--payload", '{"street": "north"}', "--key", "once")
    failed = city.record("automation run", "fail", case="failed")
    city.record("run retry", failed["id"])
    city.record("run show", run["id"])
    city.record("run explain", run["id"])
    city.record("run logs", run["id"])
    city.record("run inputs", run["id"])
    city.record("run watch", run["id"])
    city.record("run list")
    city.record("run list", "--state", "failed", "--limit", "1", case="failed")
    city.record("bulk preview", "retry", "--query", "automation:fail")
    made = city.record("bulk create", "claim", failed["id"], run["id"])
    city.record("bulk list")
    city.record("bulk show", made["id"])
    city.record("bulk results", made["id"])
    city.record("bulk abort", "last")
    city.record("run retry", "--query", "automation:fail", case="of-many")
    city.call("bulk", "abort", "last")
    city.record("automation history", "sweep")
    city.record("automation explain", "fail", case="after-a-failure")
    city.record("event list", "--type", "automation.*", "--actor", "human", "--limit", "4", case="of-runs")


def work_through_the_inbox(city: GoldenCity) -> None:
    """The file of one automation is broken, and another fails whenever it runs."""
    runs = [json.loads(city.call("automation", "run", "fail").out)["id"] for _ in range(2)]
    city.record("inbox list")
    failing = next(item["id"] for item in city.json("inbox", "list") if item["kind"] == "failed")
    city.record("inbox show", failing)
    city.record("inbox see", failing)
    city.record("inbox claim", failing)
    city.record("inbox unclaim", failing)
    city.record("run claim", runs[0])
    city.record("run unclaim", runs[0])
    city.record("run resolve", runs[0], "--outcome", "failed", "--reason", "known")
    city.record("inbox snooze", failing, "2h")
    city.record("inbox unsnooze", failing)
    city.record("inbox resolve", failing, "--comment", "Looked at by hand.")
    city.call("automation", "run", "fail")
    again = next(item["id"] for item in city.json("inbox", "list") if item["kind"] == "failed")
    city.record("inbox retry", again)
    broken = next(item["id"] for item in city.json("inbox", "list") if item["kind"] == "broken")
    city.record("inbox dismiss", broken, "--reason", "known")
    city.record("inbox reopen", broken)
    city.record("inbox snooze", broken, "--times", "2", case="until-it-recurs")
    city.call("inbox", "unsnooze", broken)
    city.record("inbox look")
    city.record("inbox see-all")
    city.call("inbox", "dismiss", broken)
    city.record("inbox list", "--state", "settled", case="settled")
    city.record("outbox list")
    city.keep("outbox retry", city.call("outbox", "retry", "out_" + "0" * 26))
    city.record("notify list")
    city.record("notify log")
    city.record("notify rules")
    city.keep("notify test", city.call("notify", "test", "team"))


def keep_rigs(city: GoldenCity) -> None:
    (city.root / "shop").mkdir()
    city.record("rig add", str(city.root / "shop"), "--prefix", "sh")
    city.record("rig suspend", "shop")
    city.record("rig list")
    city.record("rig resume", "shop")
    city.record("rig resume", "shop", case="again")


def keep_contexts(city: GoldenCity) -> None:
    city.record("context add", "far", "https://town.example", "--token", "lamp_pat_secret")
    city.record("context list")
    city.record("context use", "far")
    city.record("context remove", "far")


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


def count_and_keep(city: GoldenCity) -> None:
    """Nothing is counted where no daemon runs. The last of these takes the city away."""
    city.record("cost", "--days", "1")
    city.record("automation strip", "sweep", "--days", "2")
    tab = city.root.parent / "tab"
    tab.write_text("MAILTO=ann@example.com\n30 8 * * mon-fri /opt/triage.sh\n@reboot start-it\n")
    city.record("import cron", str(tab))
    copied = city.json("store", "copy", "--to", "sqlite:copy.db")
    city.commands["store-copy"] = {key: type(one).__name__ for key, one in copied.items()}
    city.record("store forget")
    (city.root / "copy.db").unlink()
    saved = city.root.parent / "saved"
    city.record("backup", str(saved))
    city.record("restore", str(saved), str(city.root.parent / "again"))
    city.record("uninstall")

"""Every list, show and status command on a terminal of 80 and of 120 columns, in a city with long names and 200 rows.

No line is wider than the terminal, and what is seen is on record in tests/golden/screens. The commands run in this
process with a real pseudo-terminal as standard output, at a fixed time.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lamp_program import here

from lamplighter.adapters.files.city import city_at
from lamplighter.cli.main import run as lamp_run
from lamplighter.cli.table import width_of
from lamplighter.domain.access import Role
from lamplighter.domain.beads.model import NewBead
from lamplighter.domain.delivery_fields import Provider
from lamplighter.domain.events import NewEvent
from lamplighter.domain.runs.bulk import BulkAction, BulkOutcome, BulkState, BulkVerb
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.clock import SystemClock, rfc3339
from lamplighter.kit.ids import At, IdSource
from lamplighter.store.bulk_actions import BulkItem
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.deliveries import DeliveryRow, Verdict
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.secrets import SecretRow
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.slack import Installation
from lamplighter.store.tx import Tx
from lamplighter.store.url import open_direct, parse_store_url

SCREENS = Path(__file__).parents[1] / "golden" / "screens"
WRITING = bool(os.environ.get("WRITE_GOLDENS"))
NOW = datetime(2026, 11, 17, 21, 30, tzinfo=UTC)
WIDTHS = (80, 120)
LONG = "look-after-the-very-long-list-of-everything-that-nobody-else-looks-after-in-this-city"
WIDE = "晩に街の灯りを一つずつ全部ともしてまわる係の人"
ACCENTS = "Re\u0301sume\u0301 des lumie\u0300res — наблюдение за фонарями, bitte"
EMOJI = "🏮 lanterns ❤️ and 👩‍🔧"
TEXTS = (LONG, WIDE, ACCENTS, EMOJI, "short")
NAMES = (LONG, "heartbeat", WIDE, "w")
STATES = (
    (RunState.SUCCEEDED, ""), (RunState.FAILED, "exit_3"), (RunState.NEEDS_HUMAN, ""), (RunState.TIMED_OUT, "deadline"),
    (RunState.CANCELED, "canceled"), (RunState.RUNNING, ""), (RunState.QUEUED, ""),
)  # fmt: skip
CONFIG = f"""
[workspace]
name = "{WIDE}"
timezone = "UTC"
[api]
port = 0
[session]
provider = "subprocess"
[formulas]
dir = "formulas"
[[rigs]]
name = "web"
path = "{LONG}/web"
prefix = "we"
[[agents]]
name = "{LONG[:60]}"
start_command = "true"
[[agents]]
name = "mayor"
start_command = "true"
suspended = true
[[configurations]]
name = "{LONG[:60]}"
rig = "web"
description = "{WIDE} {LONG}"
model = "a-model-with-a-rather-long-name-2026-11-17"
env = {{ LANG = "C" }}
"""
COMMANDS = {
    "status": ["status"],
    "agent-list": ["agent", "list"],
    "agent-show": ["agent", "show", "mayor"],
    "automation-list": ["automation", "list"],
    "automation-show": ["automation", "show", LONG],
    "automation-next": ["automation", "next", "--count", "5"],
    "automation-history": ["automation", "history", LONG],
    "automation-explain": ["automation", "explain", LONG],
    "automation-templates": ["automation", "templates"],
    "run-list": ["run", "list", "--limit", "200"],
    "run-show": ["run", "show", "last"],
    "run-show-failed": ["run", "show", "heartbeat"],
    "run-explain": ["run", "explain", "heartbeat"],
    "agent-explain": ["agent", "explain", "mayor"],
    "bead-list": ["bead", "list", "--limit", "200"],
    "bead-ready": ["bead", "ready"],
    "bead-show": ["bead", "show", "we-0001"],
    "event-list": ["event", "list", "--limit", "200"],
    "session-list": ["session", "list", "--all", "--limit", "200"],
    "session-show": ["session", "show", "mayor-session"],
    "rig-list": ["rig", "list"],
    "configuration-list": ["configuration", "list"],
    "configuration-show": ["configuration", "show", LONG[:60]],
    "config-explain": ["config", "explain", "workspace"],
    "formula-list": ["formula", "list"],
    "formula-show": ["formula", "show", "feature"],
    "mail-inbox": ["mail", "inbox", "human"],
    "node-list": ["node", "list"],
    "token-list": ["token", "list"],
    "login-list": ["login", "list"],
    "member-list": ["member", "list"],
    "org-show": ["org", "show"],
    "context-list": ["context", "list"],
    "audit-list": ["audit", "list"],
    "inbox-list": ["inbox", "list"],
    "outbox-list": ["outbox", "list"],
    "notify-list": ["notify", "list"],
    "notify-rules": ["notify", "rules"],
    "session-subscriptions": ["session", "subscriptions"],
    "view-list": ["view", "list"],
    "bulk-list": ["bulk", "list"],
    "bulk-show": ["bulk", "show", "last"],
    "bulk-results": ["bulk", "results", "last"],
    "worktree-list": ["worktree", "list"],
    "secret-list": ["secret", "list"],
    "connection-list": ["connection", "list"],
    "slack-list": ["slack", "list"],
    "connection-show": ["connection", "show", "gh"],
    "delivery-list": ["delivery", "list"],
    "delivery-show": ["delivery", "show", "last"],
    "simulate": ["simulate", "--days", "3"],
    "simulate-calendar": ["simulate", "--calendar", "--days", "9"],
}


@pytest.fixture(scope="module")
def town() -> Iterator[Path]:
    """A city below a directory whose name has always the same length, so that columns are always as wide."""
    with tempfile.TemporaryDirectory(prefix="screens-", dir="/tmp") as place:
        root = Path(place) / "a-directory-with-quite-a-long-name-of-its-own" / "town"
        root.mkdir(parents=True)
        with at_fixed_time():
            assert here("init", str(root)).code == 0
            (root / "city.toml").write_text(CONFIG, encoding="utf-8")
            (root / LONG / "web").mkdir(parents=True)
            _write_files(root)
            assert here("automation", "list", "--city", str(root)).code == 0
            store = open_direct(parse_store_url("", root / ".gc"), city_at(root).city_id())
            store.transact(_fill)
            store.close()
        yield root


def _write_files(root: Path) -> None:
    shown = {
        LONG: 'exec = "make everything"\ngate = "cron"\nschedule = "*/10 9-17 * * mon-fri"\nretry = 2\n'
        'timeout = "10m"\noverlap = "queue"\n',
        "heartbeat": 'exec = "echo hello"\ngate = "cooldown"\ninterval = "5s"\n',
        WIDE: f'description = "{ACCENTS}"\nexec = "echo {EMOJI}"\ngate = "schedule"\ncadence = "daily"\n'
        "hour = 3\nminute = 30\n",
        "w": 'exec = "true"\ngate = "schedule"\ncadence = "weekly"\nweekday = "mon"\nhour = 9\nminute = 0\n',
        "broken": 'gate = "never-heard-of"\nexec = "true"\n',
    }
    shown |= {f"job-{n:03}": f'gate = "manual"\nexec = "echo {TEXTS[n % 5]}"\n' for n in range(195)}
    for name, text in shown.items():
        place = root / "formulas" / "automations" / name
        place.mkdir(parents=True)
        (place / "automation.toml").write_text(f"[automation]\n{text}", encoding="utf-8")
    (root / "formulas" / "feature.formula.toml").write_text(
        f'formula = "feature"\ndescription = "{LONG} {WIDE}"\n[vars.what]\ndescription = "What"\n'
        f'[[steps]]\nid = "plan"\ntitle = "{ACCENTS}"\n[[steps]]\nid = "build"\ntitle = "{LONG}"\nneeds = ["plan"]\n',
        encoding="utf-8",
    )


def _fill(tx: Tx) -> None:
    for n in range(200):
        at = NOW - timedelta(minutes=7 * (200 - n), seconds=n)
        ids = IdSource(At(at), chance=Random(n).randbytes)
        _fill_run(tx, ids.make("run"), n, at)
        new = NewBead(title=TEXTS[n % 5], labels=("pool:coder",), assignee=LONG[:30] if n % 3 else None)
        tx.beads.insert(f"we-{n:04}", new, root=f"we-{n:04}", run=None, now=at)
        tx.events.append(
            NewEvent(
                f"kind.{n % 7}",
                at,
                "run:" + ids.make("run") if n % 2 else "controller",
                TEXTS[n % 5],
                TEXTS[(n + 1) % 5],
            )
        )
        name = "mayor-session" if n == 199 else f"gc-town-{TEXTS[n % 5]}"
        session = ids.make("ses")
        tx.sessions.add(SessionRow(session, name, "mayor", None, "subprocess", "node-1", 4000 + n, at))
        tx.sessions.end(session, SessionEnd(at + timedelta(minutes=3), "crashed", n % 4, f"{LONG}\n{WIDE}"))
    _fill_deliveries(tx)
    _fill_bulk_actions(tx)
    mail = NewBead(title=f"{LONG} {WIDE}", type="message", assignee="human", sender="mayor", description=ACCENTS * 5)
    tx.beads.insert("we-mail", mail, root="we-mail", run=None, now=NOW - timedelta(hours=3))


def _fill_bulk_actions(tx: Tx) -> None:
    for n, (action, state) in enumerate(zip((*BulkVerb,), (*BulkState, BulkState.DONE, BulkState.DONE), strict=True)):
        at = NOW - timedelta(hours=5 * (5 - n))
        ids = IdSource(At(at), chance=Random(n).randbytes)
        ended = None if state is BulkState.WORKING else at + timedelta(minutes=1)
        query = f'state:failed automation:"{LONG}"' if n % 2 else None
        row = BulkAction(
            ids.make("blk"), action, {"outcome": "failed", "reason": WIDE} if n == 4 else {}, query, TEXTS[n % 5],
            Role.OWNER, None, None, None, "cli", state, 10_000, at, 8000 + n, 1, ended, "ben" if n == 2 else None,
        )  # fmt: skip
        runs = [ids.make("run") for _ in range(3)]
        tx.bulk_actions.add(row, runs)
        tx.bulk_actions.settle(row.id, BulkItem(0, runs[0], BulkOutcome.DONE, "", ids.make("run"), at))
        tx.bulk_actions.settle(row.id, BulkItem(1, runs[1], BulkOutcome.REFUSED, f"{LONG} {ACCENTS}", None, at))


def _fill_deliveries(tx: Tx) -> None:
    tx.slack.put(
        Installation("T0123456789", LONG, "U0", "B0", "claude", "", "approval", 1, 1, NOW - timedelta(days=1), "ada")
    )
    for name, provider in (("gh", Provider.GITHUB), (LONG[:60], Provider.STANDARD)):
        tx.connections.add(ConnectionRow(name, provider, "", ("ada", LONG), (), (), NOW - timedelta(days=3), "ada"))
    tx.secrets.put(SecretRow(LONG[:60], "3f9d73798615", "n", "t", NOW, "ada", NOW - timedelta(hours=2), LONG))
    for n in range(30):
        at = NOW - timedelta(minutes=9 * (30 - n))
        delivery = IdSource(At(at), chance=Random(n).randbytes).make("dlv")
        row = DeliveryRow(delivery, "gh", f"d-{n}", {}, "{}", at, "processed", 0, "issues.opened", TEXTS[n % 5], "ada")
        tx.deliveries.add([row])
        for number, verdict in enumerate(("fired", "filtered")):
            told = f"filter: `repo` is {LONG}"
            tx.deliveries.judge(Verdict(delivery, f"aut_{number}", "webhook", NAMES[number], verdict, told, None, at))


def _fill_run(tx: Tx, run: str, n: int, at: datetime) -> None:
    state, reason = STATES[n % 7] if n < 199 else STATES[1]
    ended = None if state in {RunState.RUNNING, RunState.QUEUED} else at + timedelta(seconds=n * 13)
    row = Run(
        run,
        NAMES[n % 4] if n < 199 else LONG,
        state,
        at,
        reason=reason,
        trigger_kind=("cron", "cooldown", "manual")[n % 3],
        started_at=None if state is RunState.QUEUED else at,
        automation_id=f"auto{n % 4}",
        node="node-1",
        definition={"policies": {"retry": {"count": 2}}},
    )
    tx.runs.insert(row, [NewRunEvent(run, at, "run_created", "controller", to_state=RunState.QUEUED)])
    if ended is not None:
        after = replace(
            row,
            ended_at=ended,
            duration=ended - at,
            exit_code=3 if state is RunState.FAILED else 0,
            error=TEXTS[n % 5],
            output_tail=f"{LONG} {LONG}\n{WIDE}{WIDE}{WIDE}\n\tdone",
            summary=ACCENTS,
            tokens=1,
            cost=0.25,
        )
        tx.runs.swap(row, after)


@contextmanager
def at_fixed_time() -> Iterator[None]:
    """The clock stands at NOW, in UTC."""
    before, zone = SystemClock.now, os.environ.get("TZ")
    SystemClock.now = lambda _clock: NOW  # type: ignore[method-assign]  the process has no other door for its clock
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        SystemClock.now = before  # type: ignore[method-assign]
        if zone is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = zone
        time.tzset()


def on_terminal(width: int, arguments: list[str]) -> tuple[int, str]:
    """The exit code, and what the command writes to a terminal of that width, styles included."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    heard: list[bytes] = []

    def listen() -> None:
        while True:
            try:
                data = os.read(leader, 65536)
            except OSError:
                return
            if not data:
                return
            heard.append(data)

    reader = threading.Thread(target=listen)
    reader.start()
    out, err = sys.stdout, sys.stderr
    with os.fdopen(follower, "w", encoding="utf-8") as terminal:
        sys.stdout = sys.stderr = terminal
        try:
            code = lamp_run(arguments)
            terminal.flush()
        finally:
            sys.stdout, sys.stderr = out, err
    reader.join(timeout=180)
    os.close(leader)
    return code, b"".join(heard).decode("utf-8").replace("\r\n", "\n")


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_the_screen_is_the_one_on_record(
    town: Path, name: str, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "context-list":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for one in ("far", "x" * 60):
            assert lamp_run(["context", "add", one, f"https://{one}.example/{LONG}", "--token", "lamp_secret"]) == 0
    monkeypatch.setenv("LAMP_CITY", str(town))  # with --city its commands would name the directory, which differs
    with at_fixed_time():
        code, text = on_terminal(width, COMMANDS[name])
    shown = bare(text)
    assert code == 0, shown
    wide = [line for line in shown.split("\n") if width_of(line) > width]
    assert wide == []
    shown = shown.replace(str(town.parent.parent), "/tmp/screens-........")  # noqa: S108
    if name == "inbox-list":  # ids of items, and the end of a path that was cut, differ from run to run
        shown = re.sub(r"(?m)^[0-9a-z]{6}(?=  )", "xxxxxx", re.sub(r"(?<=/tmp/screens-)\w*…", "…", shown))
    compare(f"{name}-{width}", shown)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_running_city_fits_too(width: int) -> None:
    from lamplighter.cli.status import page

    lines = [line.text for line in page(running(), NOW, width)]
    assert all(width_of(bare(line)) <= width for line in lines)
    compare(f"status-running-{width}", bare("\n".join(lines)) + "\n")


def running() -> Mapping[str, Any]:
    """The JSON of a status of a city in which much goes on."""

    def ago(**span: float) -> str:
        return rfc3339(NOW - timedelta(**span))

    agent = {
        "state": "running",
        "reason": "",
        "pid": 4711,
        "since": ago(hours=3),
        "starts_in_window": 1,
        "session": "s",
    }
    return {
        "city": WIDE, "root": f"/srv/{LONG}", "store": f"/srv/{LONG}/.gc/lamp.db", "paused": False, "suspended": False,
        "controller": {"running": True, "pid": 17, "since": ago(days=3, hours=4), "api": "http://127.0.0.1:8372",
                       "config_error": None, "problems": {"database": f"the disk is full, {LONG}"}},
        "agents": [
            {**agent, "name": LONG},
            {**agent, "name": "web/coder-1", "state": "quarantined", "reason": f"started 5 times within 1 h, {WIDE}",
             "quarantined_until": rfc3339(NOW + timedelta(minutes=30)), "pid": None},
            {**agent, "name": "mayor", "state": "suspended", "reason": "suspended", "pid": None, "since": None},
        ],
        "nodes": [], "runs": {"running": 7, "succeeded": 190, "failed": 1}, "attention": 1,
        "next": [{"scoped_name": name, "at": rfc3339(NOW + timedelta(seconds=40 * n))} for n, name in enumerate(NAMES)],
        "under_way": [
            {"id": f"run_{n:026}", "automation": name, "state": "running", "reason": None, "at": ago(minutes=n)}
            for n, name in enumerate(NAMES)
        ],
        "failures": [
            {"id": "run_" + "k" * 26, "automation": LONG, "state": "failed", "reason": "exit_3", "at": ago(days=2)}
        ],
        "beads": {"open": 1, "in_progress": 2}, "last_event": "kind.1 (7)",
    }  # fmt: skip


@pytest.mark.parametrize("arguments", [["doctor"], ["run", "show", "a-run-that-nobody-has-ever-heard-of-before"]])
def test_findings_and_errors_are_broken_at_words(
    town: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMP_CITY", str(town))
    narrow, wide = (bare(on_terminal(width, arguments)[1]) for width in (60, 4000))
    assert all(width_of(line) <= 60 for line in narrow.split("\n"))
    assert len(narrow.split("\n")) > len(wide.split("\n"))
    short = {
        word for word in wide.split() if len(word) < 40 and "screens-" not in word and not any(map(str.isdigit, word))
    }
    assert short <= set(narrow.split())


def test_every_list_and_show_command_is_on_screen() -> None:
    import click

    from lamplighter.cli.main import root

    context = click.Context(root)
    found = set()
    for name in root.list_commands(context):
        group = root.get_command(context, name)
        if isinstance(group, click.Group):
            found |= {
                f"{name}-{verb}" for verb in group.list_commands(context) if verb in {"list", "show", "inbox", "ready"}
            }
    left_out = {
        "inbox-show": "shows an item, and the city on screen has none",
        "config-show": "prints a file that can be saved",
        "hook-show": "prints work for an agent",
        "prime-show": "prints an agent's prompt",
    }
    assert found - set(COMMANDS) - set(left_out) == set()


def test_colours_only_on_a_terminal_that_wants_them(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_fixed_time():
        assert "\x1b[31m" in on_terminal(80, ["--city", str(town), "run", "list"])[1]
        assert "\x1b[" not in here("run", "list", "--city", str(town)).out
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b[" not in on_terminal(80, ["--city", str(town), "run", "list"])[1]


def test_nothing_is_cut_where_there_is_no_terminal(town: Path) -> None:
    with at_fixed_time():
        out = here("run", "list", "--city", str(town)).out
    assert LONG in out
    assert "…" not in out


def test_every_short_id_of_a_table_is_taken_back(town: Path) -> None:
    with at_fixed_time():
        shown = here("run", "list", "--city", str(town), "--limit", "200").out
        ids = [line.split()[0] for line in shown.splitlines()[1:]]
        assert len(set(ids)) == 200
        for short in ids[::40]:
            assert here("run", "show", short, "--city", str(town), "--json").json["id"].endswith(short)


def compare(name: str, text: str) -> None:
    file = SCREENS / f"{name}.txt"
    kept = "\n".join(line.rstrip() for line in text.split("\n"))
    if WRITING:
        SCREENS.mkdir(exist_ok=True)
        file.write_text(kept, encoding="utf-8")
        return
    assert file.exists(), f"{file} is missing; `make goldens` writes it"
    assert kept == file.read_text(encoding="utf-8")

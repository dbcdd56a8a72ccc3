"""The fronts for `gc` and `bd`: which calls of `lamp` they make, and that they work on a real city."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from lamplighter.app.create import create_city
from lamplighter.app.fronts import with_fronts
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import open_city
from lamplighter.cli.fronts import front

BEAD = {
    "id": "t-1",
    "title": "T",
    "type": "task",
    "status": "open",
    "assignee": None,
    "labels": ["a"],
    "needs": ["t-2"],
}
REFUSED = ("gc sling x y", "bd gate check", "bd create", "bd update t-1 --colour=red", "bd dep add t-1 t-2 -t tracks")


class Lamp:
    """Records its calls, and answers those that ask for JSON with one bead, or with a list of beads."""

    def __init__(self, *beads: dict[str, object], code: int = 0) -> None:
        self.beads = beads or (BEAD,)
        self.code = code
        self.calls: list[str] = []

    def __call__(self, words: Sequence[str]) -> int:
        self.calls.append(" ".join(words))
        if "--json" in words and not self.code:
            many = words[1] in {"list", "ready"}
            print(json.dumps(list(self.beads) if many else self.beads[0]))
        return self.code


@pytest.mark.parametrize(
    ("call", "made"),
    [
        ("gc hook --inject", "hook --inject"),
        ("gc prime mayor", "prime mayor"),
        ("gc nudge mayor/ be quick", "agent nudge mayor -- be quick"),
        ("gc agent nudge mayor hi", "agent nudge mayor -- hi"),
        ("gc peek mayor", "agent peek mayor --lines=50"),
        ("gc session peek mayor 7", "agent peek mayor --lines=7"),
        ("gc agent drain-check", "agent drain-check"),
        ("gc runtime drain-ack", "agent drain-ack"),
        ("gc agent status mayor", "agent show mayor"),
        ("gc mail inbox mayor", "mail inbox mayor"),
        ("gc mail check --inject", "mail check --inject"),
        ("gc mail send mayor come here", "mail send -- mayor come here"),
        ("gc mail send mayor/ -s Hi -m there", "mail send -- mayor Hi\n\nthere"),
        ("gc mail send --all --notify stop", "mail send --all --notify -- stop"),
        ("gc mail send -s HANDOFF -m next", "mail send -- clerk HANDOFF\n\nnext"),
        ("gc event emit x.y --subject s", "event emit x.y --subject s"),
        ("gc events --type bead.* --since 1h", "event list --type=bead.* --since=1h --limit=100000"),
        ("gc events --follow --after 3", "event tail --after=3 --json"),
        ("gc automation list", "automation list"),
        ("bd create Fix it -t bug -l a,b --deps t-2,blocks:t-3 -p 1",
         "bead create --type=bug --label=a --label=b --needs=t-2 --needs=t-3 --meta=priority=1 --json -- Fix it"),
        ("bd ready --assignee=me --limit 1", "bead ready --assignee=me --limit=100000 --json"),
        ("bd label add t-1 x", "bead label --add=x --json -- t-1"),
        ("bd label remove t-1 x", "bead label --remove=x --json -- t-1"),
        ("bd dep add t-1 t-2", "bead update --needs=t-2 --json -- t-1"),
        ("bd dep remove t-1 t-2", "bead update --drop-needs=t-2 --json -- t-1"),
        ("bd cook work --var a=b", "formula cook --var=a=b --json -- work"),
        ("bd mol cook --formula=work --title=T --on=t-1", "formula cook --title=T --on=t-1 --json -- work"),
    ],
)  # fmt: skip
def test_a_common_verb_is_one_call_of_lamp(call: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMP_AGENT", "clerk")
    lamp = Lamp()
    program, *words = call.split(" ")
    assert front(program, words, lamp) == 0
    assert lamp.calls == [made]


def test_an_update_is_made_of_the_calls_that_it_needs_and_ends_with_the_first_that_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lamp = Lamp()
    words = ["t-1", "--claim", "--actor=me", "--set-metadata", "k=v", "--unset-metadata=old", "--add-label=x",
             "--notes=n", "--status=closed", "--json"]  # fmt: skip
    assert front("bd", ["update", *words], lamp) == 0
    assert lamp.calls == [
        "bead claim --assignee=me --json -- t-1",
        "bead update --meta=k=v --meta=old= --meta=notes=n --json -- t-1",
        "bead label --add=x --json -- t-1",
        "bead close --json -- t-1",
        "bead show --json -- t-1",
    ]
    assert json.loads(capsys.readouterr().out)["issue_type"] == "task"
    refused = Lamp(code=4)
    assert front("bd", ["update", *words], refused) == 4
    assert len(refused.calls) == 1


def test_a_reason_for_closing_is_kept_on_the_bead() -> None:
    lamp = Lamp()
    assert front("bd", ["close", "t-1", "t-2", "--reason", "all done"], lamp) == 0
    assert lamp.calls[:4] == [
        "bead update --meta=close_reason=all done --json -- t-1", "bead close --json -- t-1",
        "bead update --meta=close_reason=all done --json -- t-2", "bead close --json -- t-2",
    ]  # fmt: skip


def test_a_list_leaves_out_what_is_closed_and_what_records_runs_unless_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    beads = (BEAD, BEAD | {"id": "t-2", "status": "closed"}, BEAD | {"id": "t-3", "type": "run"})

    def listed(*words: str) -> list[str]:
        assert front("bd", ["list", "--json", *words], Lamp(*beads)) == 0
        return [bead["id"] for bead in json.loads(capsys.readouterr().out)]

    assert listed() == ["t-1"]
    assert listed("--all") == ["t-1", "t-2", "t-3"]
    assert listed("--all", "-n", "2") == ["t-1", "t-2"]


@pytest.mark.parametrize("call", REFUSED)
def test_what_a_front_does_not_know_is_refused_by_name(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = call.split()
    lamp = Lamp()
    assert front(program, words, lamp) == 2
    assert lamp.calls == []
    assert f"error: `{program} {' '.join(words[:2])}`" in capsys.readouterr().err


def test_emitting_an_event_never_fails_a_script() -> None:
    assert front("gc", ["event", "emit", "run.ended"], Lamp(code=2)) == 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "town").mkdir()
    return tmp_path / "town"


def _settings(root: Path, text: str, path: str) -> Settings:
    (root / "city.toml").write_text('[workspace]\nname = "town"\n' + text)
    settings = Settings(cwd=root, city=root, actor="test", run=None, env={"PATH": path})
    create_city(root, settings)
    return settings


def _fronts(root: Path, text: str, path: str) -> tuple[list[str], str]:
    """The names of the fronts, and the first directory on the PATH that commands get."""
    city = open_city(_settings(root, text, path))
    try:
        first = with_fronts(city, city.config.city)["PATH"].split(os.pathsep)[0]
    finally:
        city.close()
    directory = root / ".gc/fronts"
    return sorted(file.name for file in directory.iterdir()) if directory.is_dir() else [], first


def _program(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text("#!/bin/sh\n" + script)
    (directory / name).chmod(0o755)


def test_sessions_get_the_fronts_of_what_is_not_installed(root: Path, tmp_path: Path) -> None:
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    fronts = str(root / ".gc/fronts")
    assert _fronts(root, "", str(bin_dir)) == (["bd", "gc"], fronts)
    _program(bin_dir, "bd", "exit 0\n")
    _program(bin_dir, "gc", "echo cannot open version >&2\n")  # another program of that name
    assert _fronts(root, "", str(bin_dir)) == (["gc"], fronts)
    _program(bin_dir, "gc", "echo 1.2.3\n")
    assert _fronts(root, "", str(bin_dir)) == ([], str(bin_dir))


def test_the_setting_has_them_always_or_never_and_the_store_bd_is_never_covered(root: Path, tmp_path: Path) -> None:
    bin_dir = tmp_path / "bin"
    _program(bin_dir, "bd", "exit 0\n")
    always = '[session]\ngc_fronts = "always"\n'
    assert _fronts(root, always, str(bin_dir)) == (["bd", "gc"], str(root / ".gc/fronts"))
    assert _fronts(root, always + '[beads]\nprovider = "bd"\n', str(bin_dir)) == (["gc"], str(root / ".gc/fronts"))
    assert _fronts(root, '[session]\ngc_fronts = "never"\n', str(bin_dir))[1] == str(bin_dir)


def test_a_script_written_for_gas_city_does_its_work(root: Path) -> None:
    city = open_city(_settings(root, "", "/usr/bin:/bin"))
    env = {**with_fronts(city, city.config.city), "LAMP_CITY": str(root)}
    city.close()
    (root / "click.py").write_text("raise SystemExit('a file of the project was taken for a module')")
    script = """
        set -e
        id=$(bd create --title "Sweep the yard" --silent)
        bd update "$id" --set-metadata branch=main >/dev/null
        bd show "$id" --json
        bd close "$id" --reason swept >/dev/null
        gc event emit yard.swept --subject "$id" >/dev/null
        gc events --type yard.swept --json
    """
    done = subprocess.run(["sh", "-c", script], cwd=root, env=env, capture_output=True, text=True, check=True)
    shown, events = map(json.loads, done.stdout.splitlines())
    assert (shown["title"], shown["metadata"]) == ("Sweep the yard", {"branch": "main"})
    assert [event["subject"] for event in events] == [shown["id"]]

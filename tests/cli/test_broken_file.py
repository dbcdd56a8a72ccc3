"""A city.toml that cannot be read: beside a daemon, at a start, before any start, with a last good one that is bad."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lamp_program import Said, here, lamp, one_sentence, until

from lamplighter.adapters.control import ask

CITY = """\
include = ["more.toml"]
[workspace]
name = "town"
[api]
port = 0
[session]
provider = "subprocess"
[daemon]
shutdown_timeout = "2s"
[[agents]]
name = "mayor"
start_command = "sh -c 'exec sleep 600' --"
prompt_template = "prompts/mayor.md.tmpl"
"""
BEAT = '[automation]\nexec = "true"\ngate = "manual"\n'
KEYS = ["status", "run list", "event list", "automation list", "automation show beat", "bead list", "agent list",
        "agent show mayor", "agent peek mayor", "session list", "rig list", "formula list", "configuration list",
        "config show", "config explain daemon", "mail inbox", "simulate --days 1", "prime mayor",
        "daemon status"]  # fmt: skip
CALLS = ["bead create work", "bead ready", "event emit a.b", "mail send mayor hello", "agent drain mayor",
         "agent drain-check mayor", "agent undrain mayor", "pause", "resume", "automation run beat --wait"]  # fmt: skip


def write(root: Path) -> None:
    """The city as it should be."""
    if (root / "city.toml").is_dir():
        (root / "city.toml").rmdir()
    (root / "city.toml").unlink(missing_ok=True)
    (root / "city.toml").write_text(CITY)
    (root / "more.toml").write_text("[daemon]\nmax_restarts = 3\n")
    (root / "prompts").mkdir(exist_ok=True)
    (root / "prompts/mayor.md.tmpl").write_text("You are {{.AgentName}}.")


def append(root: Path, text: str) -> None:
    with (root / "city.toml").open("a") as file:
        file.write(text)


def replaced_by_a_directory(root: Path) -> None:
    (root / "city.toml").unlink()
    (root / "city.toml").mkdir()


def replaced_by_one_that_cannot_be_read(root: Path) -> None:
    """By nobody, also not by root."""
    (root / "city.toml").unlink()
    (root / "city.toml").symlink_to("/proc/self/mem")


BREAKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "not TOML": (lambda root: append(root, "[[x\n"), "city.toml: is not valid TOML"),
    "an unknown key": (lambda root: append(root, "promt = 1\n"), "promt"),
    "an include that is gone": (lambda root: (root / "more.toml").unlink(), "there is no file `more.toml`"),
    "no file": (lambda root: (root / "city.toml").unlink(), "There is no city.toml"),
    "a directory in its place": (replaced_by_a_directory, "There is no city.toml"),
    "a file that cannot be read": (replaced_by_one_that_cannot_be_read, "city.toml: cannot be read"),
}


def make(root: Path) -> Path:
    assert here("init", str(root)).code == 0
    write(root)
    beat = root / ".gc/formulas/automations/beat/automation.toml"
    beat.parent.mkdir(parents=True)
    beat.write_text(BEAT)
    return root


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A city whose daemon runs; each test leaves it whole."""
    root = make(tmp_path_factory.mktemp("running") / "town")
    try:
        assert lamp("daemon", "start", cwd=root).code == 0
        yield root
    finally:
        assert here("stop", "--city", str(root)).code == 0


@pytest.fixture
def whole(running: Path) -> Iterator[Path]:
    yield running
    write(running)
    assert ask(running / ".gc/controller.sock", "reload") == {"config_error": None}


def at(root: Path, line: str, *more: str) -> Said:
    return here(*line.split(), *more, "--city", str(root))


def break_it(root: Path, how: str) -> str:
    """Break the file and have the daemon look at it; returns what must be told about it."""
    change, told = BREAKS[how]
    change(root)
    assert told in ask(root / ".gc/controller.sock", "reload")["config_error"]
    return told


def answered(said: Said, told: str) -> None:
    """It worked, and says in one line on standard error what is broken."""
    assert said.code == 0, said
    [line] = said.err.splitlines()
    assert line.startswith("note: ")
    assert told in line
    assert "stays in force" in line


@pytest.mark.parametrize("how", BREAKS)
def test_every_read_works_beside_a_broken_file_and_names_it_once(whole: Path, how: str) -> None:
    told = break_it(whole, how)
    for line in KEYS:
        answered(at(whole, line), told)
    as_json = at(whole, "status", "--json")
    assert told in as_json.json["controller"]["config_error"]
    assert told in json.loads(as_json.err)["detail"]


def test_what_agents_and_people_do_goes_on_beside_a_broken_file(whole: Path) -> None:
    told = break_it(whole, "not TOML")
    for line in CALLS:
        answered(at(whole, line), told)
    assert at(whole, "hook mayor").code == 1, "nothing is on its hook"
    assert at(whole, "hook mayor").err.count("\n") == 1
    assert at(whole, "agent drain-ack mayor").code == 0


def test_a_typo_that_leaves_the_file_readable_is_named_by_commands_that_need_none_of_it(whole: Path) -> None:
    told = break_it(whole, "an unknown key")
    answered(at(whole, "event list"), told)
    answered(at(whole, "agent list"), told)


def test_what_edits_the_file_refuses_says_why_and_changes_nothing(whole: Path) -> None:
    told = break_it(whole, "not TOML")
    before = (whole / "city.toml").read_text()
    for line in ("suspend", "agent suspend mayor", "rig suspend web", f"rig add {whole}"):
        said = at(whole, line)
        assert said.code == 2, said
        assert said.err.startswith("error: Nothing was changed, because this command edits city.toml, which is broken")
        assert said.err.count(told) == 1, said.err
    assert (whole / "city.toml").read_text() == before
    assert at(whole, "config check").code == 2


def test_doctor_tells_a_broken_file_once(whole: Path) -> None:
    append(whole, "promt = 1\n[deamon]\n")
    ask(whole / ".gc/controller.sock", "reload")
    said = at(whole, "doctor")
    assert (said.code, said.err) == (1, "")
    assert [said.out.count(word) for word in ("promt", "deamon:")] == [1, 1], said.out


def test_a_mended_file_is_no_longer_told(whole: Path) -> None:
    break_it(whole, "not TOML")
    write(whole)
    assert at(whole, "event list").err == ""
    assert ask(whole / ".gc/controller.sock", "reload") == {"config_error": None}
    assert not (whole / ".gc/config.rejected").exists()


def test_a_store_that_the_daemon_refuses_to_change_to_is_not_used_by_commands_either(whole: Path) -> None:
    append(whole, '[store]\nurl = "sqlite:elsewhere.db"\n')
    assert "store.url" in ask(whole / ".gc/controller.sock", "reload")["config_error"]
    answered(at(whole, "event emit still.here"), "store.url: cannot change while the city runs")
    assert not (whole / "elsewhere.db").exists()


def test_a_city_is_started_from_the_last_good_configuration_and_says_so_first(tmp_path: Path) -> None:
    root = make(tmp_path / "town")
    assert at(root, "start").code == 0
    assert at(root, "stop").code == 0
    append(root, "[[x\n")
    try:
        said = lamp("daemon", "start", cwd=root)
        assert said.code == 0, said
        log = (root / ".gc/daemon.log").read_text()
        assert 0 <= log.find("stays in force") < log.index("The lamps are lit")
        status = at(root, "status", "--json").json
        assert "city.toml: is not valid TOML" in status["controller"]["config_error"]
        until(lambda: [row["state"] for row in at(root, "agent list", "--json").json] == ["running"])
        [event] = at(root, "event list --type config.rejected", "--json").json
        assert "is not valid TOML" in event["message"]
        write(root)
        assert ask(root / ".gc/controller.sock", "reload") == {"config_error": None}
        assert at(root, "status", "--json").json["controller"]["config_error"] is None
    finally:
        assert at(root, "stop").code == 0


def test_one_pass_and_a_stop_work_from_the_last_good_configuration(tmp_path: Path) -> None:
    root = make(tmp_path / "town")
    assert at(root, "start").code == 0
    (root / "city.toml").unlink()
    answered(at(root, "start"), "There is no city.toml")
    answered(at(root, "stop"), "There is no city.toml")
    assert [row["state"] for row in at(root, "agent list", "--json").json] == ["stopped"]


def test_resume_lifts_both_or_neither(tmp_path: Path) -> None:
    root = make(tmp_path / "town")
    (root / "city.toml").write_text(CITY.replace('name = "town"', 'name = "town"\nsuspended = true'))
    assert at(root, "start").code == 0
    assert at(root, "pause").code == 0
    append(root, "[[x\n")
    refused = at(root, "resume")
    assert refused.code == 2
    assert refused.err.startswith("error: Nothing was changed")
    assert at(root, "status", "--json").json["paused"] is True
    (root / "city.toml").write_text((root / "city.toml").read_text().replace("[[x\n", ""))
    assert at(root, "resume").out == "Lifted: pause and suspension.\n"


def test_a_city_that_never_started_refuses_with_every_problem(tmp_path: Path) -> None:
    root = make(tmp_path / "town")
    append(root, "promt = 1\n[deamon]\n")
    said = at(root, "automation list")
    assert said.code == 2
    assert ("promt" in said.err, "deamon" in said.err) == (True, True)


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a text was changed": (lambda good: next(good.glob("*-city.toml")).write_text("[workspace]"), "is damaged"),
    "a text is gone": (lambda good: next(good.glob("*-city.toml")).unlink(), "is damaged"),
    "half a manifest": (lambda good: (good / "manifest.json").write_text("{"), "cannot be read"),
    "another manifest": (lambda good: (good / "manifest.json").write_text("[]"), "is not what this program writes"),
    "of a newer program": (
        lambda good: (good / "manifest.json").write_text('{"format": 99, "program": "9.9"}'),
        "was written by a newer program (9.9)",
    ),
    "nothing": (shutil.rmtree, ""),
    "a file in its place": (lambda good: (shutil.rmtree(good), good.write_text("")), "cannot be read"),
}


def test_a_last_good_configuration_that_is_bad_itself_is_left_aside_with_a_word(tmp_path: Path) -> None:
    root = make(tmp_path / "town")
    assert at(root, "start").code == 0
    assert at(root, "stop").code == 0
    append(root, "[[x\n")
    good = root / ".gc/config.good"
    shutil.copytree(good, tmp_path / "kept")
    for how, (harm, word) in HARMS.items():
        harm(good)
        refused = one_sentence(at(root, "automation list"), 2)
        assert ("is not valid TOML" in refused, word in refused) == (True, True), (how, refused)
        assert at(root, "start").code == 2
        good.unlink() if good.is_file() else shutil.rmtree(good, ignore_errors=True)
        shutil.copytree(tmp_path / "kept", good)
    answered(at(root, "automation list"), "is not valid TOML")

"""Secrets as people use them: kept encrypted, given to programs, masked where they are shown, on each database."""

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest
from lamp_program import Said, here, lamp, one_sentence

VALUE = "swordfish-4711"
PLAIN = '[workspace]\nname = "town"\n\n[api]\nport = 0\n'


@pytest.fixture(params=["sqlite", "postgres"])
def town(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "town"
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    root.mkdir()
    (root / "city.toml").write_text(f'{PLAIN}\n[store]\nurl = "{url}"\n')
    assert here("init", str(root)).code == 0
    return root


def keep(root: Path, monkeypatch: pytest.MonkeyPatch, name: str = "API_KEY", value: str = VALUE) -> Said:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{value}\n"))
    return here("secret", "set", name, "--city", str(root))


def ask(root: Path, *words: str) -> Said:
    return here(*words, "--city", str(root))


def test_a_program_gets_the_value_and_nobody_is_shown_it(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert keep(town, monkeypatch).code == 0
    line = 'echo "${#KEY}: $KEY"'
    made = ask(town, "automation", "create", "job", "--manual", "--exec", line, "--set", "env.KEY=secret:API_KEY")
    assert made.code == 0, made
    run = ask(town, "automation", "run", "job", "--json").json
    shown = ask(town, "run", "show", run["id"], "--json")
    assert (shown.json["state"], shown.json["output_tail"]) == ("succeeded", f"{len(VALUE)}: •••\n")
    told = [shown, ask(town, "secret", "list"), ask(town, "audit", "list", "--json"), ask(town, "event", "list")]
    told += [ask(town, "automation", "show", "job", "--json"), ask(town, "run", "logs", run["id"])]
    assert not [one for one in told if VALUE in one.out + one.err]
    assert "secret:API_KEY" in told[4].out


def test_a_secret_that_is_gone_fails_the_run_and_is_named(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(town, monkeypatch)
    ask(town, "automation", "create", "job", "--manual", "--exec", "true", "--set", "env.KEY=secret:API_KEY")
    refused = ask(town, "automation", "create", "other", "--manual", "--exec", "true", "--set", "env.KEY=secret:API_KE")
    assert (refused.code, "did you mean `API_KEY`" in refused.err) == (2, True)
    assert ask(town, "secret", "delete", "API_KEY").code == 0
    assert one_sentence(ask(town, "secret", "delete", "API_KEY"), 3)
    assert ask(town, "automation", "run", "job", "--json").json["reason"] == "secret_missing"
    with (town / "city.toml").open("a") as file:
        file.write('\n[[agents]]\nname = "ada"\nstart_command = "true"\nenv = { KEY = "secret:GONE" }\n')
    doctor, check = ask(town, "doctor"), ask(town, "config", "check")
    assert "job: env.KEY: there is no secret `API_KEY`" in doctor.out
    assert "agent ada: env.KEY: there is no secret `GONE`" in doctor.out
    assert "agent ada: env.KEY: there is no secret `GONE`" in check.out + check.err


def test_a_rotated_key_opens_everything_and_swapped_rows_open_nothing(
    town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(town, monkeypatch, "ONE", "the first value")
    keep(town, monkeypatch, "TWO", "the second value")
    before = {one["name"]: one["key_id"] for one in ask(town, "secret", "list", "--json").json}
    assert ask(town, "secret", "rotate-key", "--json").json["resealed"] == 2
    after = {one["name"]: one["key_id"] for one in ask(town, "secret", "list", "--json").json}
    assert set(before.values()).isdisjoint(after.values())
    assert "2 secrets open." in ask(town, "doctor").out
    swap(town)
    found = ask(town, "doctor").out
    assert found.count("its row was altered, or belongs to another name or city") == 2


def swap(root: Path) -> None:
    from lamplighter.app.settings import Settings
    from lamplighter.app.wiring import open_city
    from lamplighter.store.tx import Tx

    def exchange(tx: Tx) -> None:
        one, two = tx.secrets.all()
        assert tx.secrets.swap(one, two.sealed)
        assert tx.secrets.swap(two, one.sealed)

    opened = open_city(Settings(root, root, "ada", None, {}))
    opened.store.transact(exchange)
    opened.close()


def test_a_backup_holds_no_key_and_what_cannot_be_opened_is_named(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(town, monkeypatch)
    file, other = town.parent / "saved.tar.gz", town.parent / "other"
    assert ask(town, "backup", str(file)).code == 0
    key = (town / ".gc/secret.key").read_text().strip()
    with tarfile.open(file) as archive:
        texts = [(archive.extractfile(one) or io.BytesIO()).read() for one in archive if one.isfile()]
        assert not [one for one in archive.getnames() if "secret.key" in one]
    assert not [text for text in texts if key.encode() in text or VALUE.encode() in text]
    shutil.move(town, town.parent / "away")
    assert here("restore", str(file), str(other)).code == 0
    found = ask(other, "doctor").out
    assert "Secret `API_KEY` cannot be opened: its key" in found
    shutil.copy2(town.parent / "away/.gc/secret.key", other / ".gc/secret.key")
    assert "1 secret opens." in ask(other, "doctor").out


def test_a_shell_without_the_key_makes_no_second_one(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMP_SECRET_KEY", "11" * 32)
    assert keep(town, monkeypatch).code == 0
    monkeypatch.delenv("LAMP_SECRET_KEY")
    [kept] = ask(town, "secret", "list", "--json").json
    made = ("connection", "create", "hooks", "--provider", "standard")
    for refused in (keep(town, monkeypatch, "OTHER"), ask(town, *made), ask(town, "secret", "rotate-key")):
        assert kept["key_id"] in one_sentence(refused, refused.code)
        assert refused.code != 0
        assert not (town / ".gc/secret.key").exists()
    monkeypatch.setenv("LAMP_SECRET_KEY", "11" * 32)
    assert keep(town, monkeypatch, "OTHER").code == 0


def test_a_copy_that_becomes_a_city_of_its_own_keeps_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, copy = tmp_path / "town", tmp_path / "copy"
    assert here("init", str(root)).code == 0
    keep(root, monkeypatch)
    shutil.copytree(root, copy, symlinks=True)
    assert here("init", "--new-id", str(copy)).code == 0
    assert "1 secret opens." in ask(copy, "doctor").out


def test_the_key_of_the_environment_reaches_no_command(tmp_path: Path) -> None:
    root, env = tmp_path / "town", {"LAMP_SECRET_KEY": "ab" * 32}
    assert lamp("init", str(root), cwd=tmp_path, env=env).code == 0
    made = lamp("automation", "create", "job", "--exec", "env", "--manual", cwd=root, env=env)
    assert made.code == 0, made
    run = lamp("automation", "run", "job", "--json", cwd=root, env=env).json
    assert "LAMP_SECRET_KEY" not in lamp("run", "logs", run["id"], cwd=root, env=env).out
    assert "LAMP_SECRET_KEY" not in os.environ


def test_a_value_too_short_to_be_masked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    short, long = keep(root, monkeypatch, "PIN", "12345"), keep(root, monkeypatch, "LONG", "123456")
    assert (short.code, "PIN has fewer than 6 characters" in short.err, "12345" in short.err) == (0, True, False)
    assert (long.code, long.err) == (0, "")


@pytest.mark.parametrize("name", ["", "a b", "../x", "connection/github/1", "-x", "a" * 65])
def test_what_cannot_be_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("value"))
    assert one_sentence(here("secret", "set", "--city", str(root), "--", name), 2)

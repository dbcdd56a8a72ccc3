"""`lamp org` with two cities of one PostgreSQL whose daemons run: let in, shown, used by one token, and out again."""

import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import psycopg
import pytest
from lamp_program import Said, here, lamp, one_sentence

from lamplighter.adapters.control import ask
from lamplighter.services.operation import ROOT

Ask = Callable[..., Said]


@pytest.fixture
def cities(tmp_path: Path, postgres_url: str) -> Iterator[tuple[Path, Path]]:
    """Two cities whose daemons run."""
    made = []
    try:
        for name in ("north", "south"):
            root = tmp_path / name
            assert here("init", str(root)).code == 0
            (root / "city.toml").write_text(
                f'[workspace]\nname = "{name}"\n[api]\nport = 0\n[store]\nurl = "{postgres_url}"\n'
            )
            made.append(root)
            assert lamp("daemon", "start", cwd=root).code == 0
        yield made[0], made[1]
    finally:
        for root in made:
            assert here("stop", "--city", str(root)).code == 0


def at(root: Path, line: str, *more: str) -> Said:
    return here(*line.split(), *more, "--city", str(root))


def piped(monkeypatch: pytest.MonkeyPatch, root: Path, line: str, text: str) -> Said:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return at(root, line)


def status(root: Path, path: str, token: str) -> int:
    """What the daemon of the city answers to somebody with this token."""
    base = str(ask(root / ".gc/controller.sock", "status")["api"])
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"{base}{ROOT}{path}", headers=headers, trust_env=False, timeout=60).status_code


def test_two_daemons_know_one_token_until_it_is_revoked_at_either(
    cities: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    north, south = cities
    assert at(north, "member add ben").code == 0
    token = at(north, "token create ci --member ben --json").json
    assert (status(north, "/runs", token["token"]), status(south, "/runs", token["token"])) == (200, 401)
    invitation = at(north, "org invite --json").json["invitation"]

    told = piped(monkeypatch, south, "org join --dry-run", f"{invitation}\n")
    assert told.out.splitlines()[0] == "The city south leaves the organization south and comes to north, with north."
    assert "The organization south ends, as it has no other city." in told.out
    assert "ben (member)" in told.out
    assert "--yes" in one_sentence(piped(monkeypatch, south, "org join", invitation), 2)
    assert status(south, "/runs", token["token"]) == 401, "nobody was asked, so nothing was done"
    assert piped(monkeypatch, south, "org join --yes", invitation).out == "south is in the organization north now.\n"
    assert "no invitation that holds" in one_sentence(piped(monkeypatch, south, "org join --yes", invitation), 1)
    assert (status(north, "/runs", token["token"]), status(south, "/runs", token["token"])) == (200, 200)
    shown = at(south, "org show").out
    assert "north" in shown
    assert "this city" in shown

    refused = one_sentence(at(south, "member add mallory --role owner"), 1)
    assert "home city, north" in refused
    assert at(south, "org leave --dry-run").out.splitlines()[-1].startswith("Nobody but its local owner")
    assert at(north, f"token revoke {token['id']}").code == 0
    assert (status(north, "/runs", token["token"]), status(south, "/runs", token["token"])) == (401, 401)

    boss = at(north, "token create boss --json").json["token"]
    base = str(ask(south / ".gc/controller.sock", "status")["api"])
    (south / "boss").write_text(boss)
    assert here("member", "add", "cleo", "--url", base, "--token-file", str(south / "boss")).code == 0
    assert "cleo" in [one["name"] for one in at(north, "member list --json").json]
    assert "is the home" in one_sentence(at(north, "org leave --yes"), 4)
    assert (
        at(north, "org home south").out
        == "north is looked after from south now, whose local owner is an owner of it.\n"
    )
    assert at(south, "org home north").code == 0
    assert at(south, "org leave --name lone --yes").out == "south is in the organization lone now.\n"
    assert (status(north, "/runs", boss), status(south, "/runs", boss)) == (200, 401)
    assert piped(monkeypatch, south, "org join --yes", at(north, "org invite --json").json["invitation"]).code == 0
    assert (status(north, "/runs", boss), status(south, "/runs", boss)) == (200, 200)
    assert at(north, "org remove south").code == 0
    assert (status(north, "/runs", boss), status(south, "/runs", boss)) == (200, 401)
    assert [one["name"] for one in at(south, "org show --json").json["members"]] == []
    assert at(south, "audit list --json").json[0]["operation"] == "org.remove"


def test_a_backup_brings_back_nobody_who_was_put_out(
    tmp_path: Path, cities: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """What a copy tells of members and tokens does not count where the organization has other cities."""
    north, south = cities
    assert at(north, "member add ben --role owner").code == 0
    token = at(north, "token create ci --member ben --json").json["token"]
    assert piped(monkeypatch, south, "org join --yes", at(north, "org invite --json").json["invitation"]).code == 0
    copied = tmp_path / "south.db"
    assert here("stop", "--city", str(south)).code == 0
    assert at(south, f"store copy --to sqlite:{copied}").code == 0
    with closing(sqlite3.connect(copied)) as connection:
        assert connection.execute("SELECT count(*) FROM members").fetchone() == (2,)
        (home,) = connection.execute("SELECT home_city_id FROM organizations").fetchone()
        assert connection.execute("SELECT id FROM cities").fetchone() == (home,), "alone there, it is the home"
        connection.execute("UPDATE tokens SET scopes = '[]'")
        connection.execute("UPDATE members SET role = 'owner'")
        connection.commit()
    assert at(north, "member remove ben").code == 0
    assert at(south, "event emit town.changed").code == 0
    copy = at(south, f"store copy --from sqlite:{copied} --replace")
    assert copy.code == 0, copy
    assert [one["name"] for one in at(south, "member list --json").json] != []
    assert "ben" not in [one["name"] for one in at(south, "member list --json").json]
    assert status(north, "/runs", token) == 401
    assert at(north, "org remove south").code == 0
    back = one_sentence(at(south, f"store copy --from sqlite:{copied} --replace"), 4)
    assert "another organization by now" in back
    with psycopg.connect(postgres_url) as connection:
        orphans = connection.execute(
            "SELECT count(*) FROM organizations WHERE id NOT IN (SELECT organization_id FROM cities)"
        ).fetchone()
        assert orphans == (0,)


def test_a_city_with_a_new_id_has_an_organization_of_its_own(tmp_path: Path) -> None:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    assert at(root, "member add ben").code == 0
    assert at(root, "token create ci --member ben").code == 0
    before = at(root, "org show --json").json
    assert here("init", "--new-id", str(root)).code == 0
    after = at(root, "org show --json").json
    assert after["id"] != before["id"]
    assert (after["is_home"], [one["name"] for one in after["members"]]) == (True, ["ben"])
    assert [one["revoked_at"] is not None for one in at(root, "token list --json").json] == [True]
    assert at(root, "member add ann").code == 0

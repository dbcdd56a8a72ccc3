"""A city moves to another database with its history, and nobody loses it by changing the URL."""

import json
from pathlib import Path

import pytest
from lamp_program import here, lamp, one_sentence

from lamplighter.adapters.files.lock import ControllerLock
from lamplighter.store.copying import digests_of
from lamplighter.store.url import parse_store_url

PLAIN = '[workspace]\nname = "town"\n\n[api]\nport = 0\n'


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert here("init", str(root)).code == 0
    (root / "city.toml").write_text(PLAIN)
    assert here("bead", "create", "Mend the lamp", "--city", str(root)).code == 0
    return root


def use(root: Path, url: str) -> None:
    (root / "city.toml").write_text(f'{PLAIN}\n[store]\nurl = "{url}"\n')


def titles(root: Path) -> list[str]:
    return [one["title"] for one in here("bead", "list", "--json", "--city", str(root)).json]


def test_a_city_is_copied_and_the_way_to_switch_is_told(town: Path, postgres_url: str) -> None:
    said = here("store", "copy", "--to", postgres_url, "--city", str(town))
    assert said.code == 0
    assert f'url = "{postgres_url}"' in said.out
    use(town, postgres_url)
    assert titles(town) == ["Mend the lamp"]
    back = here("store", "copy", "--to", "sqlite:back.db", "--json", "--city", str(town)).json
    assert back["to"] == "sqlite:back.db"
    assert (back["already"], back["in_use"]) == (False, False)
    city = json.loads((town / ".gc/city-id").read_text().splitlines()[1]) and (town / ".gc/city-id").read_text()
    runtime, name = town / ".gc", city.splitlines()[0]
    assert digests_of(parse_store_url("sqlite:back.db", runtime), name) == digests_of(
        parse_store_url("", runtime), name
    )


def test_a_copy_needs_another_database_and_a_stopped_city(town: Path, postgres_url: str) -> None:
    at = ("--city", str(town))
    one_sentence(here("store", "copy", *at), 2)
    one_sentence(here("store", "copy", "--to", "sqlite:.gc/lamp.db", *at), 2)
    one_sentence(here("store", "copy", "--to", "mysql://there", *at), 2)
    assert "cannot be reached" in one_sentence(here("store", "copy", "--to", "postgresql://localhost:1/no", *at), 5)
    lock = ControllerLock(town / ".gc/controller.lock")
    lock.take()
    try:
        assert "already runs" in one_sentence(here("store", "copy", "--to", postgres_url, *at), 4)
    finally:
        lock.release()


@pytest.mark.timeout(900)
def test_a_changed_url_warns_until_the_history_is_brought_over(town: Path, postgres_url: str) -> None:
    assert lamp("start", cwd=town).code == 0
    use(town, postgres_url)
    started = lamp("start", cwd=town)
    assert "lamp store copy --from sqlite:.gc/lamp.db" in started.err
    assert "was empty" in here("status", "--json", "--city", str(town)).json["controller"]["problems"]["store"]
    assert "store copy --from sqlite:.gc/lamp.db" in here("doctor", "--city", str(town)).out
    assert titles(town) == []
    refused = one_sentence(here("store", "copy", "--from", "sqlite:.gc/lamp.db", "--city", str(town)), 4)
    assert "--replace" in refused
    done = here("store", "copy", "--from", "sqlite:.gc/lamp.db", "--replace", "--json", "--city", str(town))
    assert done.json["in_use"]
    assert titles(town) == ["Mend the lamp"]
    assert "store" not in here("status", "--json", "--city", str(town)).json["controller"]["problems"]
    again = lamp("start", cwd=town)
    assert "store copy" not in again.err


def test_a_run_before_the_first_start_on_a_new_url_is_refused_while_the_history_is_elsewhere(
    town: Path, postgres_url: str
) -> None:
    use(town, postgres_url)
    at = ("--city", str(town))
    assert here("automation", "create", "tidy", "--exec", "true", "--manual", *at).code == 0
    told = one_sentence(here("automation", "run", "tidy", *at), 5)
    assert "has no row of this city yet" in told
    assert "store copy --from sqlite:.gc/lamp.db --replace` brings it over" in told
    assert "up` begins without it" in told
    assert here("run", "list", "--json", *at).json == []


def test_a_run_before_the_first_start_on_a_new_url_works_without_a_history(tmp_path: Path, postgres_url: str) -> None:
    root = tmp_path / "fresh"
    assert here("init", str(root)).code == 0
    use(root, postgres_url)
    at = ("--city", str(root))
    assert here("automation", "create", "tidy", "--exec", "true", "--manual", *at).code == 0
    assert here("automation", "run", "tidy", "--json", *at).json["state"] == "succeeded"


@pytest.mark.timeout(900)
def test_the_warning_ends_when_a_person_goes_on_without_the_history(town: Path, postgres_url: str) -> None:
    use(town, postgres_url)
    assert "store copy" in lamp("start", cwd=town).err
    assert "sqlite:.gc/lamp.db" in here("store", "forget", "--city", str(town)).out
    assert "store copy" not in lamp("start", cwd=town).err
    assert "no earlier database" in here("store", "forget", "--city", str(town)).out


@pytest.mark.timeout(900)
def test_a_url_of_a_file_that_is_not_there_names_the_copy(town: Path) -> None:
    assert lamp("start", cwd=town).code == 0
    use(town, "sqlite:other.db")
    told = one_sentence(lamp("start", cwd=town), 5)
    assert "lamp store copy --from sqlite:.gc/lamp.db" in told
    assert here("store", "copy", "--from", "sqlite:.gc/lamp.db", "--city", str(town)).code == 0
    assert lamp("start", cwd=town).code == 0
    assert titles(town) == ["Mend the lamp"]


@pytest.mark.timeout(900)
def test_a_city_without_history_moves_silently(tmp_path: Path, postgres_url: str) -> None:
    root = tmp_path / "fresh"
    assert here("init", str(root)).code == 0
    use(root, postgres_url)
    assert "store copy" not in lamp("start", cwd=root).err

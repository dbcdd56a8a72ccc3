import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamplighter.adapters.files.secrets import city_key, hand_over, owner_token
from lamplighter.kit.errors import Unavailable


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        key = city_key(tmp_path)
        token = owner_token(tmp_path)
    finally:
        os.umask(old)
    assert len(key) == 32
    assert (city_key(tmp_path), owner_token(tmp_path)) == (key, token)
    assert mode(tmp_path / "run.key") == mode(tmp_path / "owner.token") == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["owner.token", "run.key"]


def test_many_who_come_at_once_get_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: city_key(tmp_path), range(32)))
    assert len(keys) == 1


@pytest.mark.parametrize("content", [b"", b"00", b"not hex at all", b"\xff" * 64])
def test_a_file_that_holds_no_key_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.key").write_bytes(content)
    (tmp_path / "run.key").chmod(0o600)
    with pytest.raises(Unavailable, match="does not hold a key"):
        city_key(tmp_path)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    city_key(tmp_path)
    (tmp_path / "run.key").chmod(0o644)
    with pytest.raises(Unavailable, match="read by others"):
        city_key(tmp_path)


def test_an_owner_s_token_that_is_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "owner.token").touch(0o600)
    with pytest.raises(Unavailable, match="does not hold a token"):
        owner_token(tmp_path)


def test_a_token_is_handed_over_in_a_file_of_its_own_and_again(tmp_path: Path) -> None:
    path = tmp_path / "session/token"
    hand_over(path, "first")
    path.chmod(0o644)
    hand_over(path, "second")
    assert path.read_text() == "second\n"
    assert mode(path) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["token"]


@pytest.mark.parametrize("make", [city_key, owner_token])
def test_a_state_directory_that_was_moved_away_is_not_made_anew(make: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="was deleted or moved away"):
        make(tmp_path / ".gc")
    assert not (tmp_path / ".gc").exists()

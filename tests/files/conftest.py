"""Cities on disk, and how they are loaded in tests."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from city_files import ENV, MakeCity, city_maker, git

from lamplighter.adapters.files.layers import LoadedCity, load_city
from lamplighter.domain.city.tree import ConfigInvalid


@pytest.fixture
def make_city(tmp_path: Path) -> MakeCity:
    return city_maker(tmp_path / "bright-lights")


@pytest.fixture
def load(make_city: MakeCity) -> Callable[..., LoadedCity]:
    def loaded(files: Mapping[str, str], **env: str) -> LoadedCity:
        return load_city(make_city(files), env={**ENV, **env})

    return loaded


@pytest.fixture
def problems(load: Callable[..., LoadedCity]) -> Callable[..., list[str]]:
    """What is wrong with a city, one line a problem; nothing when it loads."""

    def found(files: Mapping[str, str], **env: str) -> list[str]:
        try:
            load(files, **env)
        except ConfigInvalid as error:
            return error.message.splitlines()
        return []

    return found


@pytest.fixture
def make_repository(tmp_path: Path) -> Callable[[str, Mapping[str, str]], str]:
    """Commit files into a git repository of this name; returns its URL."""

    def make(name: str, files: Mapping[str, str]) -> str:
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        git(root, "init", "-q", "-b", "main")
        git(root, "add", "-A")
        git(root, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "files")
        return f"file://{root}"

    return make

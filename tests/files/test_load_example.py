from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from city_example import FILES, SHARED
from city_files import ENV, MakeCity, git

from lamplighter.adapters.files.layers import LoadedCity, load_city


@pytest.fixture
def loaded(make_city: MakeCity, make_repository: Callable[..., str], tmp_path: Path) -> LoadedCity:
    url = make_repository("topologies", SHARED)
    git(tmp_path / "topologies", "tag", "v1.2.0")
    return load_city(make_city({**FILES, "city.toml": FILES["city.toml"].replace("SHARED", url)}), env=ENV)


def test_the_complete_example_loads_and_only_keys_without_effect_are_told(loaded: LoadedCity) -> None:
    assert [(one.key.rpartition(".")[2], one.message) for one in loaded.warnings] == [
        ("provider", "is accepted and not used"), ("default_sling_formula", "is accepted and not used"),
        ("default_sling_target", "is accepted and not used"),
    ]  # fmt: skip
    assert [agent.qualified_name for agent in loaded.city.agents] == [
        "dog", "mayor", "storefront/coder", "storefront/reviewer",
    ]  # fmt: skip


def test_the_example_s_override_reaches_the_agent_of_the_rig_s_topology(loaded: LoadedCity) -> None:
    reviewer = loaded.city.agent("storefront/reviewer")
    assert reviewer is not None
    assert reviewer.pool is not None
    assert (reviewer.idle_timeout, reviewer.pool.min, reviewer.pool.max) == (timedelta(minutes=30), 1, 2)
    assert reviewer.prompt_template == ".gc/topologies/shared/coding/prompts/reviewer.md"


def test_the_example_s_patches_reach_agent_and_provider(loaded: LoadedCity) -> None:
    dog = loaded.city.agent("dog")
    assert dog is not None
    assert dog.suspended
    assert loaded.city.providers["house-bot"].ready_delay_ms == 5000
    assert loaded.city.providers["house-bot"].args == ("--auto",)


def test_the_example_s_fragment_counts(loaded: LoadedCity) -> None:
    assert loaded.city.automations.skip == ("noisy-sweep", "nightly")
    assert loaded.city.workspace.suspended

"""What an item needs, and what a process may take."""

from lamplighter.domain.delivery.reach import Reach, need_of, stage_of


def test_only_stages_that_touch_a_rig_need_it() -> None:
    payload = stage_of("run_1", "web")
    assert need_of("enqueue_execute", payload) == "rig:web"
    assert need_of("cook", payload) == "rig:web"
    assert need_of("enqueue_enrich", payload) is None
    assert need_of("enqueue_execute", stage_of("run_1", None)) is None


def test_what_is_asked_of_a_node_needs_that_node() -> None:
    assert need_of("stop_session", {"session": "run_1", "run": "run_1", "node": "east"}) == "node:east"


def test_a_process_takes_its_nodes_items_and_those_of_its_rigs() -> None:
    assert Reach("east", frozenset({"web", "api"})).needs == ["node:east", "rig:api", "rig:web"]

"""Which name a node goes by, who leads, and who watches whom."""

import pytest

from lamplighter.domain.cluster.nodes import Known, NodeTaken, PlaceNamed, choose_name, first_among, successor

HERE, THERE = "nod_1 box:/town/.gc", "nod_2 barn:/town/.gc"


def test_a_place_that_is_new_takes_the_hosts_name() -> None:
    assert choose_name(None, "box", HERE, []) == "box"


def test_a_place_keeps_the_name_it_is_known_by() -> None:
    assert choose_name(None, "box", HERE, [Known("east", HERE, busy=False)]) == "east"


def test_a_second_place_on_one_host_gets_a_number() -> None:
    known = [Known("box", THERE, busy=True), Known("box-2", "nod_3 elsewhere", busy=True)]
    assert choose_name(None, "box", HERE, known) == "box-3"
    assert choose_name(None, "box", HERE, [Known("box", THERE, busy=False)]) == "box"


def test_a_directory_keeps_its_name_under_another_path_and_host() -> None:
    moved = "nod_1 shed:/elsewhere/.gc"
    assert choose_name(None, "shed", moved, [Known("box", HERE, busy=True)]) == "box"
    assert choose_name("box", "shed", moved, [Known("box", HERE, busy=True)]) == "box"


def test_a_name_that_is_wished_is_taken() -> None:
    assert choose_name("east", "box", HERE, [Known("box", THERE, busy=True)]) == "east"


def test_the_name_of_another_node_that_is_at_work_is_refused() -> None:
    with pytest.raises(NodeTaken):
        choose_name("east", "box", HERE, [Known("east", THERE, busy=True)])


def test_the_name_of_a_node_that_is_gone_for_good_is_free() -> None:
    assert choose_name("east", "box", HERE, [Known("east", THERE, busy=False)]) == "east"


def test_a_place_at_work_cannot_be_renamed() -> None:
    with pytest.raises(PlaceNamed):
        choose_name("west", "box", HERE, [Known("east", HERE, busy=True)])
    assert choose_name("west", "box", HERE, [Known("east", HERE, busy=False)]) == "west"


def test_the_controller_leads_else_the_oldest_and_never_a_command() -> None:
    assert first_among([("own_1", "worker"), ("own_2", "controller")]) == "own_2"
    assert first_among([("own_0", "command"), ("own_2", "worker"), ("own_1", "worker")]) == "own_1"
    assert first_among([("own_0", "command")]) is None


def test_everyone_is_watched_by_exactly_one() -> None:
    ring = ["own_1", "own_2", "own_3"]
    watched = [successor(me, [other for other in ring if other != me]) for me in ring]
    assert watched == ["own_2", "own_3", "own_1"]
    assert successor("own_1", []) is None

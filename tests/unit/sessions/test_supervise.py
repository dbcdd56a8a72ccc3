from lamplighter.domain.sessions.supervise import Strategy, taken_along, without_rings

CHAIN = {"a": (), "b": ("a",), "c": ("b",), "d": ("a",), "lone": ()}


def test_needs_of_unknown_agents_are_dropped_and_rings_opened() -> None:
    opened = without_rings({"a": ("b", "ghost"), "b": ("a",)})
    assert opened == {"a": ("b",), "b": ()}


def test_each_strategy_takes_along_its_own() -> None:
    assert taken_along("a", CHAIN, Strategy.ONE_FOR_ONE) == frozenset()
    assert taken_along("a", CHAIN, Strategy.REST_FOR_ONE) == {"b", "c", "d"}
    assert taken_along("c", CHAIN, Strategy.REST_FOR_ONE) == frozenset()
    assert taken_along("c", CHAIN, Strategy.ONE_FOR_ALL) == {"a", "b", "d"}

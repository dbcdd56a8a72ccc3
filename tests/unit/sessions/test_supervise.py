from lamplighter.domain.sessions.supervise import Strategy, find_cycle, taken_along, without_rings

CHAIN = {"a": (), "b": ("a",), "c": ("b",), "d": ("a",), "lone": ()}


def test_a_ring_is_found_and_named() -> None:
    assert find_cycle(CHAIN) == ()
    assert find_cycle({"a": ("c",), "b": ("a",), "c": ("b",)}) in {
        ("a", "c", "b", "a"), ("b", "a", "c", "b"), ("c", "b", "a", "c"),
    }  # fmt: skip
    assert find_cycle({"a": ("a",)}) == ("a", "a")


def test_needs_of_unknown_agents_are_dropped_and_rings_opened() -> None:
    opened = without_rings({"a": ("b", "ghost"), "b": ("a",)})
    assert find_cycle(opened) == ()
    assert opened["a"] == ("b",)


def test_each_strategy_takes_along_its_own() -> None:
    assert taken_along("a", CHAIN, Strategy.ONE_FOR_ONE) == frozenset()
    assert taken_along("a", CHAIN, Strategy.REST_FOR_ONE) == {"b", "c", "d"}
    assert taken_along("c", CHAIN, Strategy.REST_FOR_ONE) == frozenset()
    assert taken_along("c", CHAIN, Strategy.ONE_FOR_ALL) == {"a", "b", "d"}

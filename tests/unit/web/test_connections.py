"""Which connection goes when the port is full."""

from dataclasses import dataclass, field

import pytest

from lamplighter.web.connections import Connections


@dataclass(eq=False)
class One:
    address: str = "127.0.0.1"
    busy: bool = False
    dropped: list[str] = field(default_factory=list)

    def drop(self, reason: str) -> None:
        self.dropped.append(reason)


def full(*, most: int, **of_address: int) -> tuple[Connections, list[One]]:
    connections, all_of_them = Connections(most, **of_address), [One() for _ in range(most)]
    for one in all_of_them:
        assert connections.add(one)
    return connections, all_of_them


def dropped(these: list[One]) -> list[int]:
    return [number for number, one in enumerate(these) if one.dropped]


def test_the_oldest_stranger_without_a_request_goes_first() -> None:
    connections, these = full(most=4)
    connections.trust(these[0])
    these[1].busy = True
    assert connections.add(One())
    assert dropped(these) == [2]
    assert len(connections) == 4


def test_a_stranger_that_is_answered_goes_before_anybody_with_a_token() -> None:
    connections, these = full(most=2)
    connections.trust(these[0])
    these[1].busy = True
    assert connections.add(One())
    assert dropped(these) == [1]


def test_where_all_have_shown_a_token_the_oldest_idle_one_goes() -> None:
    connections, these = full(most=3)
    for one in these:
        connections.trust(one)
    these[0].busy = True
    assert connections.add(One())
    assert dropped(these) == [1]


def test_nobody_with_a_token_is_cut_off_in_the_middle_of_an_answer() -> None:
    connections, these = full(most=2)
    for one in these:
        connections.trust(one)
        one.busy = True
    assert not connections.add(One())
    assert dropped(these) == []


@pytest.mark.parametrize(("address", "gone"), [("192.0.2.7", [0]), ("127.0.0.1", []), ("::1", [])])
def test_one_address_of_another_machine_has_so_many_strangers_and_no_more(address: str, gone: list[int]) -> None:
    connections = Connections(100, most_of_address=3)
    these = [One(address) for _ in range(4)]
    for one in these:
        assert connections.add(one)
    assert dropped(these) == gone


def test_one_that_is_gone_makes_room() -> None:
    connections, these = full(most=2)
    connections.remove(these[0])
    connections.remove(these[0])
    assert connections.add(One())
    assert dropped(these) == []

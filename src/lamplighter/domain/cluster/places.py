"""The place of a node, as text: the id of its directory, then a space and where that was last found."""


def same_place(one: str, other: str) -> bool:
    return one.split(" ", 1)[0] == other.split(" ", 1)[0]


def where(place: str) -> str:
    """The location part of a place, for people."""
    return place.split(" ", 1)[-1]

import pytest

from lamplighter.kit.json_text import DEEPEST, TooDeep, is_too_deep, parse


@pytest.mark.parametrize(
    "text", ["[" * DEEPEST + "]" * DEEPEST, '[["[[[["]' + ", [1]" * 500 + "]", b'{"a": [1, null]}']
)
def test_json_within_the_depth_is_read(text: str | bytes) -> None:
    assert parse(text) is not None


@pytest.mark.parametrize("levels", [DEEPEST + 1, 2000, 100_000])
@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_json_beyond_the_depth_is_refused(levels: int, start: str, end: str) -> None:
    with pytest.raises(TooDeep, match="more than 100 arrays and objects"):
        parse(start * levels + "1" + end * levels)


@pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", b"\xff\xff"])
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_only_arrays_and_objects_count_as_levels() -> None:
    deep: list[object] = [1]
    for _ in range(DEEPEST - 1):
        deep = [deep, "text"]
    assert not is_too_deep(deep)
    assert is_too_deep([deep])

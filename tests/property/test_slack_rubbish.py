"""What comes from Slack may be anything: reading it never fails, whatever stands in a part of it."""

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamplighter.domain.slack import messages
from lamplighter.domain.slack.events import is_early, said, stopped, with_files
from lamplighter.domain.slack.markdown import shown
from lamplighter.kit.clock import SystemClock
from lamplighter.services.slack import picking, pressing, stopping
from lamplighter.testing.slack_shapes import BOT_ID, BOT_USER, TEAM, press

FILE = {
    "id": "F1",
    "name": "a.png",
    "mimetype": "image/png",
    "size": 3,
    "url_private_download": "https://a.slack.com/a",
}
EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message", "user": "U1", "text": f"<@{BOT_USER}> <https://a.example|a>", "ts": "1.0", "thread_ts": "0.9",
     "channel": "C1", "channel_type": "im", "subtype": "file_share", "files": [FILE]},
    {"type": "reaction_added", "user": "U1", "reaction": "x", "event_ts": "1.0",
     "item": {"type": "message", "channel": "C1", "ts": "1.0"}},
)  # fmt: skip
MENU = messages.picker("Where?", "slt_1", {"web": "pages"})
ACTION = {**MENU[1]["elements"][0], "block_id": MENU[1]["block_id"], "action_ts": "1.0",
          "selected_option": {"value": "web"}}  # fmt: skip
BUTTON = {"type": "button", "action_id": "lamp:claim", "block_id": "lamp:itm_1", "value": "claim", "action_ts": "1.0"}
STOP = {"type": "button", "action_id": "lamp:stop", "block_id": "lamp:slt_1", "value": "stop", "action_ts": "1.0"}
PRESSES = tuple(press(one, {"ts": "1.0", "text": "x", "blocks": MENU}, "C1", "U1") for one in (ACTION, BUTTON, STOP))
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def paths(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    return [path, *(found for key, one in pairs for found in paths(one, (*path, key)))]


@st.composite
def spoiled(draw: st.DrawFn, wholes: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """One of them, with something else in one place."""
    whole = copy.deepcopy(draw(st.sampled_from(wholes)))
    path = draw(st.sampled_from(paths(whole)[1:]))
    at: Any = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = draw(ANY)
    return whole


@given(spoiled(EVENTS))
def test_any_event_is_read(event: dict[str, Any]) -> None:
    found = said(TEAM, event, bot_user=BOT_USER, bot_id=BOT_ID)
    stopped(TEAM, event, bot_user=BOT_USER)
    if found is not None:
        is_early(found, SystemClock().now())
        assert with_files(found, [], []).text


@given(spoiled(PRESSES))
def test_any_press_is_read(payload: dict[str, Any]) -> None:
    for read in (pressing.read, stopping.read, picking.read):
        read(payload)


@given(st.text(alphabet="*_~`#[]()<>&|!@ \nabh:/.-", max_size=80))
def test_whatever_is_said_mentions_nobody_and_links_only_to_the_web(text: str) -> None:
    found = shown(text)
    marks = found.split("<")[1:]
    assert all(one.startswith(("http://", "https://")) for one in marks)
    assert found.count("<") == found.count(">")

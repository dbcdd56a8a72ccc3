"""Configurations from rubbish: refused with every problem, or kept and read back as they were."""

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter.domain.city.configurations import ConfigurationInvalid, body_of, changed, of_body, shown
from lamplighter.domain.city.configurations import given as decoded
from lamplighter.domain.city.keys import keys_of
from lamplighter.domain.city.model import City, Configuration, Rig, Workspace

CITY = City(workspace=Workspace(name="town"), rigs=(Rig(name="web", path="web"),))
keys = st.sampled_from(sorted(keys_of(Configuration)))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["web", "/srv", "plan", "shell", "git@x:y", "a b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("A"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
bodies = st.dictionaries(keys | st.text(max_size=5), values, max_size=6)


@given(bodies, bodies)
@settings(max_examples=300, deadline=None)
def test_rubbish_is_refused_or_kept_as_it_was(body: dict[str, Any], changes: dict[str, Any]) -> None:
    one = kept(body) or Configuration(name="kept")
    assert of_body(one.name, json.loads(json.dumps(body_of(one)))) == one
    assert json.dumps(shown(one))
    after = kept(changed(one, changes))
    if after is not None:
        assert all(getattr(after, key) == getattr(one, key) for key in body_of(one).keys() - {*changes, "rig", "path"})


def kept(body: dict[str, Any]) -> Configuration | None:
    with contextlib.suppress(ConfigurationInvalid):
        return decoded(body, CITY)
    return None

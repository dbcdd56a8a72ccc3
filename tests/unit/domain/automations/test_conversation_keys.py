"""The value at a path, by which a firing goes on with a conversation."""

from typing import Any

import pytest

from lamplighter.domain.automations.conversations import key_at


@pytest.mark.parametrize(
    ("found", "key"),
    [
        ({"issue": {"number": 7}}, "7"),
        ({"issue": 7}, None),
        ({"issue": "a number"}, None),
        ({"issue": ["number"]}, None),
        ({"issue": {}}, None),
    ],
)
def test_a_path_that_leads_through_a_single_value_leads_nowhere(found: dict[str, Any], key: str | None) -> None:
    assert key_at("issue.number", found) == key

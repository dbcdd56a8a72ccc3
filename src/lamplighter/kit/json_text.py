"""JSON objects that many rows share: read once, and written again without being encoded anew."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any


class Written(dict[str, Any]):
    """An object together with the text it was read from. Shared by all who read that text: nobody changes it."""

    __slots__ = ("text",)

    text: str


@lru_cache(maxsize=4096)
def read(text: str) -> Written:
    found = Written(json.loads(text))
    found.text = text
    return found


def text_of(body: Mapping[str, Any]) -> str:
    return body.text if isinstance(body, Written) else json.dumps(body, sort_keys=True)

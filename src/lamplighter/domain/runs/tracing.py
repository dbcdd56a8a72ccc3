"""The trace that a run belongs to, as W3C Trace Context writes it: the sender's, handed on to the run's programs."""

import re
from collections.abc import Mapping
from typing import Any

HEADER, VARIABLE = "traceparent", "TRACEPARENT"
_SOUND = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


def is_sound(traceparent: str) -> bool:
    """Whether it names a trace and a span; one of a later version may say more after them."""
    found = _SOUND.fullmatch(traceparent)
    if found is None or traceparent.startswith("ff") or (traceparent.startswith("00") and found[3]):
        return False
    return bool(found[1].strip("0") and found[2].strip("0"))


def variables(trigger: Mapping[str, Any] | None) -> dict[str, str]:
    """The variable with which programs join the trace of what fired their run; none where that told of no trace."""
    found = (trigger or {}).get(HEADER)
    return {VARIABLE: found} if isinstance(found, str) and is_sound(found) else {}

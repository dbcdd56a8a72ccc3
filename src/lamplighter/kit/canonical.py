"""Canonical JSON: equal values give equal text, whatever the order of their keys."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Keys are sorted and spaces left out; a whole number is written as an integer even if it is a float.

    Raises ValueError for NaN and infinities, TypeError for other values that JSON cannot express.
    """
    return json.dumps(_settled(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def fingerprint(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def _settled(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): _settled(one) for key, one in value.items()}
    return [_settled(one) for one in value] if isinstance(value, list | tuple) else value

"""JSON in one spelling: what means the same is written the same, whatever order its keys came in."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Keys sorted, no spaces; whole numbers are written the same as integers and as floats.

    Raises ValueError for what JSON cannot say.
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

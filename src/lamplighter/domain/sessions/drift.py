"""Drift: a session was started with other declared behaviour than the configuration now asks for."""

import hashlib
import json
from collections.abc import Mapping

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Seen
from lamplighter.kit import json_text

Fingerprint = Mapping[str, str]


def digest(fields: Fingerprint) -> str:
    return hashlib.sha256(json.dumps(dict(fields), sort_keys=True).encode()).hexdigest()


def marks(fields: Fingerprint) -> dict[str, str]:
    """The metadata that a start records."""
    return {meta.FINGERPRINT: digest(fields), meta.FINGERPRINT_FIELDS: json.dumps(dict(fields), sort_keys=True)}


def drifted_fields(seen: Seen, wanted: Fingerprint) -> tuple[str, ...]:
    """The fields that changed since the session was started; empty if none did or if no fingerprint was recorded."""
    recorded = seen.meta.get(meta.FINGERPRINT, "")
    if not recorded or recorded == digest(wanted):
        return ()
    before = _fields(seen.meta.get(meta.FINGERPRINT_FIELDS, ""))
    changed = tuple(sorted(key for key in before.keys() | wanted.keys() if before.get(key) != wanted.get(key)))
    return changed or ("configuration",)


def _fields(text: str) -> dict[str, str]:
    try:
        found = json_text.parse(text)
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

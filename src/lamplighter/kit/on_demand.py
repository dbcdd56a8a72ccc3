"""Loads what a table names when it is first used, so that a short command or a small city loads only what it needs.

This is for tables of alternatives, of which a process uses few: adapters, repositories. A place is written as
`package.module:name`.
"""

from importlib import import_module
from typing import Any


def load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)

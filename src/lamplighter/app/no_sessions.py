"""Where local session providers keep their files, and whether a city has certainly no session, asked without them."""

import os
from collections.abc import Mapping
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.sessions.tmux.words import socket_path

SESSION_HOMES = {"subprocess": "sessions", "tmux": "sessions-tmux"}


def has_no_sessions(paths: CityPaths, provider: str, env: Mapping[str, str]) -> bool:
    """False also if that takes more to find out: a provider that is asked by a script, a missing tmux, a long path.

    `provider` is the configured one; an empty name stands for tmux or subprocess, whichever is to be had.
    """
    if provider not in {"", *SESSION_HOMES} or (provider == "tmux" and not _has_tmux(env)):
        return False
    return _is_empty(paths.runtime / SESSION_HOMES["subprocess"]) and not _may_serve(paths)


def _has_tmux(env: Mapping[str, str]) -> bool:
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(f"{folder}/tmux", os.X_OK) for folder in folders)


def _is_empty(home: Path) -> bool:
    """Whether no session has a directory there; names that begin with a dot are being made or removed."""
    try:
        return all(name.startswith(".") for name in os.listdir(home))  # noqa: PTH208  plain names cost half
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _may_serve(paths: CityPaths) -> bool:
    """Whether a tmux server may run for the city: its socket answers, or is not where it can be told cheaply."""
    place = socket_path(paths.runtime, "", paths.runtime / "elsewhere")
    if place.parent != paths.runtime:
        return True
    if not place.exists():
        return False
    import socket

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.connect(os.fspath(place))
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return True

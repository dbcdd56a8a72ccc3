"""Which session provider a city uses, and where it keeps what it needs."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths
from lamplighter.domain.city.model import City
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.ports.sessions import SessionProvider

_SCRIPT = "exec:"
_HOMES = {"subprocess": "sessions", "tmux": "sessions-tmux"}


def provider_name(city: City, env: Mapping[str, str]) -> str:
    """The one that is named; else tmux where it is installed."""
    named = city.session.provider
    if named:
        return named
    return "tmux" if shutil.which("tmux", path=env.get("PATH")) is not None else "subprocess"


def open_provider(
    paths: CityPaths, city: City, env: Mapping[str, str], *, clock: Clock, ids: IdSource
) -> SessionProvider:
    """Raises UsageError for one that is not there."""
    return open_named(provider_name(city, env), paths, env, clock=clock, ids=ids)


def used_here(paths: CityPaths) -> tuple[str, ...]:
    """Providers of this machine that the city's sessions were ever started with."""
    return tuple(name for name, folder in _HOMES.items() if (paths.runtime / folder).is_dir())


def open_named(name: str, paths: CityPaths, env: Mapping[str, str], *, clock: Clock, ids: IdSource) -> SessionProvider:
    """The adapters are imported only where they are used."""
    city_id = paths.city_id()
    if name == "subprocess":
        from lamplighter.adapters.sessions.local.provider import SubprocessProvider

        return SubprocessProvider(paths.runtime / _HOMES[name], city=city_id, clock=clock, ids=ids)
    if name == "tmux":
        from lamplighter.adapters.sessions.tmux.provider import TmuxProvider

        root, socket = paths.runtime / _HOMES[name], tmux_socket(paths, env)
        return TmuxProvider(root, socket, city=city_id, clock=clock, ids=ids, environ=env)
    if name.startswith(_SCRIPT):
        from lamplighter.adapters.sessions.exec.provider import ExecProvider

        return ExecProvider(_script(paths, name, env), city=city_id, clock=clock, ids=ids, env=env)
    if name == "fake":
        from lamplighter.adapters.sessions.fake import FakeProvider

        return FakeProvider(clock, ids, city=city_id)
    if name == "fail":
        from lamplighter.adapters.sessions.fail import FailProvider

        return FailProvider()
    raise UsageError(f"There is no session provider `{name}` here.", hint="Set another in [session] of city.toml.")


def setup_env(paths: CityPaths, city: City, env: Mapping[str, str]) -> dict[str, str]:
    """What `session_setup` needs beyond the session's own environment: a plain `tmux …` reaches the city's server."""
    return {"TMUX": f"{tmux_socket(paths, env)},0,0"} if provider_name(city, env) == "tmux" else {}


def tmux_socket(paths: CityPaths, env: Mapping[str, str]) -> Path:
    from lamplighter.adapters.sessions.tmux.words import socket_path

    runtime = Path(env.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    return socket_path(paths.runtime, paths.city_id(), runtime)


def _script(paths: CityPaths, name: str, env: Mapping[str, str]) -> Path:
    given = name.removeprefix(_SCRIPT)
    if os.sep in given:
        return paths.root / given
    found = shutil.which(given, path=env.get("PATH"))
    return Path(found) if found is not None else paths.root / given

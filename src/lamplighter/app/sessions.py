"""Chooses and opens a city's session provider, and knows where each keeps its files."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.sessions.tmux.words import socket_path
from lamplighter.app.no_sessions import SESSION_HOMES
from lamplighter.domain.city.model import City
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.on_demand import load
from lamplighter.ports.sessions import SessionProvider

_SCRIPT = "exec:"
_PROVIDERS = {
    "subprocess": "lamplighter.adapters.sessions.local.provider:SubprocessProvider",
    "tmux": "lamplighter.adapters.sessions.tmux.provider:TmuxProvider",
    _SCRIPT: "lamplighter.adapters.sessions.exec.provider:ExecProvider",
    "fake": "lamplighter.adapters.sessions.fake:FakeProvider",
    "fail": "lamplighter.adapters.sessions.fail:FailProvider",
}


def provider_name(city: City, env: Mapping[str, str]) -> str:
    """The configured provider; else tmux if it is installed, else subprocess."""
    named = city.session.provider
    if named:
        return named
    return "tmux" if shutil.which("tmux", path=env.get("PATH")) is not None else "subprocess"


def open_provider(
    paths: CityPaths, city: City, env: Mapping[str, str], *, clock: Clock, ids: IdSource
) -> SessionProvider:
    """Raises UsageError for an unknown provider."""
    return open_named(provider_name(city, env), paths, env, clock=clock, ids=ids)


def used_here(paths: CityPaths) -> tuple[str, ...]:
    """The local providers that have ever started sessions of this city."""
    return tuple(name for name, folder in SESSION_HOMES.items() if (paths.runtime / folder).is_dir())


def open_named(name: str, paths: CityPaths, env: Mapping[str, str], *, clock: Clock, ids: IdSource) -> SessionProvider:
    """Raises UsageError for an unknown provider. Adapters are imported only when they are used."""
    city_id = paths.city_id()
    kind = _SCRIPT if name.startswith(_SCRIPT) else name
    if kind not in _PROVIDERS:
        raise UsageError(f"There is no session provider `{name}` here.", hint="Set another in [session] of city.toml.")
    adapter = load(_PROVIDERS[kind])
    made: SessionProvider
    match kind:
        case "subprocess":
            made = adapter(paths.runtime / SESSION_HOMES[name], city=city_id, clock=clock, ids=ids)
        case "tmux":
            root, socket = paths.runtime / SESSION_HOMES[name], tmux_socket(paths, env)
            made = adapter(root, socket, city=city_id, clock=clock, ids=ids, environ=env)
        case "fake":
            made = adapter(clock, ids, city=city_id)
        case "fail":
            made = adapter()
        case _:
            made = adapter(_script(paths, name, env), city=city_id, clock=clock, ids=ids, env=env)
    return made


def setup_env(paths: CityPaths, city: City, env: Mapping[str, str]) -> dict[str, str]:
    """What `session_setup` needs beyond the session's own environment: a plain `tmux …` reaches the city's server."""
    return {"TMUX": f"{tmux_socket(paths, env)},0,0"} if provider_name(city, env) == "tmux" else {}


def tmux_socket(paths: CityPaths, env: Mapping[str, str]) -> Path:
    runtime = Path(env.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    return socket_path(paths.runtime, paths.city_id(), runtime)


def _script(paths: CityPaths, name: str, env: Mapping[str, str]) -> Path:
    given = name.removeprefix(_SCRIPT)
    if os.sep in given:
        return paths.root / given
    found = shutil.which(given, path=env.get("PATH"))
    return Path(found) if found is not None else paths.root / given

"""Which configuration is in force: that of the files, or the last good one while they cannot be used."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lamplighter.adapters.files.last_good import LastGood, last_good
from lamplighter.adapters.files.layers import load_city, load_kept
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.tree import ConfigInvalid
from lamplighter.kit.errors import LampError


@dataclass(frozen=True)
class InForce:
    """`problem` says why the files are not in force, whole; None where they are. `note` says it in one line."""

    config: LoadedCity
    problem: str | None = None
    note: str | None = None


class RefusedByDaemon(LampError):
    """The files are right, but the daemon cannot change over to them while it runs."""


def in_force(root: Path, env: Mapping[str, str], *, refused: str | None = None) -> InForce:
    """`refused` is why a running daemon does not take files that can be read: the last good ones count then too.

    Raises what is wrong with the files where there is no last good configuration.
    """
    if refused is not None:
        try:
            return _kept(root, env, RefusedByDaemon(refused))
        except LampError:
            return InForce(load_city(root, env=env))
    try:
        return InForce(load_city(root, env=env))
    except LampError as error:
        return _instead(root, env, error)


def _instead(root: Path, env: Mapping[str, str], error: LampError) -> InForce:
    """Raises `error` where nothing can stand in; that what was kept is of no use either is told with its hint."""
    try:
        return _kept(root, env, error)
    except LampError as second:
        if second.message:
            why = second.message.splitlines()[0]
            error.hint = f"{error.hint} The last good configuration cannot be used: {why}.".strip()
        raise error from None


def _kept(root: Path, env: Mapping[str, str], error: LampError) -> InForce:
    """Raises NoLastGood, or ConfigInvalid where this program or environment does not take what was kept."""
    good = last_good(root)
    config = load_kept(root, good.texts, good.revision, env=env)
    return InForce(config, error.message, _note(error, good))


def _note(error: LampError, good: LastGood) -> str:
    count = len(error.problems) if isinstance(error, ConfigInvalid) else 1
    more = f" (and {count - 1} more)" if count > 1 else ""
    first = error.message.splitlines()[0].rstrip(".")
    when = f"{good.kept_at[:10]} {good.kept_at[11:19]} UTC"
    tell = "; `lamp config check` tells all" if count > 1 else ""
    return f"{first}{more}; the configuration of {when} stays in force{tell}."

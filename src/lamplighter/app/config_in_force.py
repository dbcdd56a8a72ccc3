"""Decides which configuration is in force: the files, or the last good one while the files cannot be used."""

import os
from collections.abc import Mapping
from pathlib import Path

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.last_good import LastGood, last_good, rejected
from lamplighter.adapters.files.layers import load_city, load_kept
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.tree import ConfigInvalid
from lamplighter.kit.errors import LampError
from lamplighter.kit.records import record


@record
class InForce:
    """`problem` is the full reason why the files are not in force, None if they are; `note` is the same in one line."""

    config: LoadedCity
    problem: str | None = None
    note: str | None = None


class RefusedByDaemon(LampError):
    """The files are valid, but the daemon cannot switch to them while it runs."""


def in_force(root: Path, env: Mapping[str, str], *, refused: str | None = None) -> InForce:
    """`refused` is the reason why a running daemon does not switch to valid files; the last good ones are in force then
    too, and the files only if there are no last good ones.

    Raises the error of broken files if there is no usable last good configuration.
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


def refused(paths: CityPaths) -> str | None:
    """Why the running daemon keeps the old configuration although the files are valid; None if it does not."""
    if not os.path.exists(paths.rejected):  # noqa: PTH110  false for what may not be read
        return None
    noted = rejected(paths.rejected)
    if noted is None or not noted.readable or controller_pid(paths.lock) is None:
        return None
    return noted.reason


def _instead(root: Path, env: Mapping[str, str], error: LampError) -> InForce:
    """Fall back to the last good configuration.

    Raises `error` if that is not possible; its hint then says why an existing kept configuration is unusable.
    """
    try:
        return _kept(root, env, error)
    except LampError as second:
        if second.message:
            why = second.message.splitlines()[0]
            error.hint = f"{error.hint} The last good configuration cannot be used: {why}.".strip()
        raise error from None


def _kept(root: Path, env: Mapping[str, str], error: LampError) -> InForce:
    """Raises NoLastGood; ConfigInvalid if the kept texts are invalid for this program version or environment."""
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

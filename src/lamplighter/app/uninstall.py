"""`lamp uninstall`: stops a city for good and takes its service away; its files stay unless they are to go too."""

import shutil

from lamplighter.app import service_units
from lamplighter.app.agent_runs import worktrees_of
from lamplighter.app.stop_city import stop_city
from lamplighter.app.wiring import OpenCity
from lamplighter.kit import aio
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.services.keeping import UninstalledView
from lamplighter.store.url import SqliteUrl


def uninstall(city: OpenCity, *, purge: bool) -> UninstalledView:
    """Raises CopiedCity, SessionsLeft, Unavailable."""
    city.need_own()
    place = city.place
    removed: list[str] = []
    by_hand: list[str] = []
    for system in (False, True):
        try:
            unit = service_units.unit_for(city.paths, city.settings.env, system=system)
        except UsageError:
            break  # there is no service manager here
        if unit.path.exists():
            by_hand += service_units.run_all(unit.disable, city.settings.env)
            try:
                unit.path.unlink()
                removed.append(str(unit.path))
            except PermissionError:
                by_hand.append(f"rm {unit.path}")
    stopped = stop_city(city, within=None).pid
    left = [f"{city.paths.root}: city.toml and the other files that you wrote."]
    inside = isinstance(place, SqliteUrl) and place.path.resolve().is_relative_to(city.paths.runtime.resolve())
    if purge:
        left += aio.run(_without_worktrees(city))
        city.close()
        shutil.rmtree(city.paths.runtime)
        removed.append(str(city.paths.runtime))
    else:
        left.append(f"{city.paths.runtime}: the city's state{' and database' if inside else ''}; `--purge` deletes it.")
    if not inside:
        left.append(f"{place}: the city's rows, under its id; they are deleted only by hand.")
    left.append("The program itself: `pip uninstall lamplighter`, or as you installed it.")
    return UninstalledView(stopped, removed, by_hand, left)


async def _without_worktrees(city: OpenCity) -> list[str]:
    """Remove the runs' worktrees from their repositories; returns what stays there: branches with unmerged commits."""
    worktrees = worktrees_of(city)
    left = []
    for one in await worktrees.all():
        try:
            branch = await worktrees.discard(one)
        except LampError as error:
            left.append(f"{one.repository}: git's record of the worktree of run {one.run}: {error.message}")
            continue
        if branch is not None:
            left.append(f"{one.repository}: the branch {branch}, with commits of a run that are on no other branch.")
    return left

"""Edits the user's own files: sets a key, adds a row, suspends; every other byte stays as it was."""

import codecs
from collections.abc import Mapping, Sequence
from pathlib import Path

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.splice import append_row, set_key, value_at
from lamplighter.adapters.files.toml import text_of
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.tree import KeyPath, Place, Table
from lamplighter.domain.city.variables import rig_of
from lamplighter.kit.errors import Conflict, NotFound
from lamplighter.kit.nearest import did_you_mean, full_stop
from lamplighter.kit.records import record

OWN_LAYERS = frozenset({"city", "fragment"})
CITY_FILE = "city.toml"


@record
class Edit:
    """A file as it was and as it should be."""

    file: Path
    before: str
    after: str

    @property
    def changes(self) -> bool:
        return self.before != self.after


def apply(edit: Edit) -> None:
    """Write the new text atomically. Raises Conflict when the file has changed since the edit was made."""
    if not edit.changes:
        return
    content = edit.file.read_bytes()
    mark = content[: len(content) - len(content.removeprefix(codecs.BOM_UTF8))]
    if content != mark + edit.before.encode():
        raise Conflict(f"{edit.file} was changed meanwhile.", hint="Look at it, then run the command again.")
    write_atomically(edit.file, mark + edit.after.encode())


def suspend_city(loaded: LoadedCity, *, suspended: bool) -> Edit:
    """The edit that suspends or resumes the whole city."""
    workspace: Table | None = loaded.table.get("workspace")
    place = workspace.at("suspended") if workspace is not None and "suspended" in workspace.leaves else None
    return _switch(place, ("workspace", "suspended"), loaded.city.root / CITY_FILE, suspended=suspended)


def suspend_rig(loaded: LoadedCity, name: str, *, suspended: bool) -> Edit:
    """Raises NotFound."""
    rigs = {rig.get("name"): rig for rig in loaded.table.tables("rigs")}
    if name not in rigs:
        raise NotFound(f"There is no rig `{name}`{full_stop(name, rigs)}", hint="`lamp rig list` shows them.")
    rig = rigs[name]
    place = rig.at("suspended") if "suspended" in rig.leaves else None
    return _switch(place, (*rig.place.path, "suspended"), _file(rig.place), suspended=suspended)


def suspend_agent(loaded: LoadedCity, qualified: str, *, suspended: bool) -> Edit:
    """Edits the agent's declaration, or adds a patch or override if a topology declares it. Raises NotFound."""
    agents = dict(
        zip((agent.qualified_name for agent in loaded.city.agents), loaded.table.tables("agents"), strict=True)
    )
    if qualified not in agents:
        near = did_you_mean(qualified, agents)
        raise NotFound(f"There is no agent `{qualified}`{near}.", hint="`lamp agent list` shows them.")
    table = agents[qualified]
    place = table.at("suspended") if "suspended" in table.leaves else None
    own = place if place is not None and place.origin.layer in OWN_LAYERS else None
    if own is not None or table.place.origin.layer in OWN_LAYERS:
        return _switch(own, (*table.place.path, "suspended"), _file(table.place), suspended=suspended)
    if table.get("suspended", False) is suspended:
        return _unchanged(loaded.city.root / CITY_FILE)
    return _patched(loaded, qualified, {"suspended": suspended})


def set_value(file: Path, path: KeyPath, value: object) -> Edit:
    """Set one key of one file, creating its table if there is none."""
    before = _read(file)
    return Edit(file, before, set_key(before, path, value))


def add_row(file: Path, key: str, row: Mapping[str, object]) -> Edit:
    """Append an agent or a rig, as `[[agents]]` or `[[rigs]]`."""
    before = _read(file)
    return Edit(file, before, append_row(before, (key,), row))


def _switch(place: Place | None, path: KeyPath, file: Path, *, suspended: bool) -> Edit:
    """Set `suspended` where it is set already, else at `path` of `file`; false is not written if nothing is set."""
    if place is None:
        return set_value(file, path, value=True) if suspended else _unchanged(file)
    if place.origin.layer not in OWN_LAYERS:
        raise Conflict(f"`suspended` is set by the {place.origin.layer}, as {place.path[0]}.", hint="Change it there.")
    return set_value(_file(place), place.path, suspended)


def _patched(loaded: LoadedCity, qualified: str, change: Mapping[str, object]) -> Edit:
    """An override in the rig whose topology declares the agent, else a patch in the city's file."""
    agent = next(agent for agent in loaded.city.agents if agent.qualified_name == qualified)
    rig = rig_of(loaded.city, agent)
    if rig is None:
        file, before = loaded.city.root / CITY_FILE, _read(loaded.city.root / CITY_FILE)
        row: dict[str, object] = {"dir": agent.dir} if agent.dir else {}
        row |= {"name": agent.name, **change}
        return Edit(file, before, _merged_row(before, ("patches", "agents"), row, ("dir", "name")))
    place = next(table.place for table in loaded.table.tables("rigs") if table.get("name") == rig.name)
    before = _read(_file(place))
    row = {"agent": agent.name, **change}
    return Edit(_file(place), before, _merged_row(before, (*place.path, "overrides"), row, ("agent",)))


def _merged_row(text: str, path: KeyPath, row: Mapping[str, object], identity: Sequence[str]) -> str:
    """Set the keys of the row with the same identity, or append a new row."""
    rows = value_at(text, path, [])
    for index, known in enumerate(rows):
        if all(known.get(key, "") == row.get(key, "") for key in identity):
            for key in row.keys() - set(identity):
                text = set_key(text, (*path, index, key), row[key])
            return text
    return append_row(text, path, row)


def _unchanged(file: Path) -> Edit:
    text = _read(file)
    return Edit(file, text, text)


def _read(file: Path) -> str:
    return text_of(file.read_bytes())


def _file(place: Place) -> Path:
    return place.origin.directory / Path(place.origin.file).name

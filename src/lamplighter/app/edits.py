"""Commands that change city.toml: they edit the user's text in place and restore it if the result is invalid."""

from pathlib import Path

from lamplighter.adapters.files import edit
from lamplighter.adapters.files.layers import load_city
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.acts import Act
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Rig
from lamplighter.kit.errors import Conflict, Kind, LampError
from lamplighter.services.automations import editing
from lamplighter.store.tx import Tx


def suspend_city(city: OpenCity) -> bool:
    """False if nothing had to change. Raises NotEditable."""
    config = editable(city)
    changed = apply_edit(city, edit.suspend_city(config, suspended=True))
    if changed:
        _tell(city, "city.suspended", config.city.name)
    return changed


def resume_city(city: OpenCity) -> list[str]:
    """Lift suspension and pause, both or neither; returns what was lifted. Raises NotEditable.

    The file is edited first, and put back if the store does not take the rest. With a broken city.toml the pause can
    still be lifted, provided that the configuration in force is not suspended.
    """
    suspended = city.config.city.workspace.suspended
    change = edit.suspend_city(editable(city), suspended=False) if suspended or city.in_force.problem is None else None
    resumed = change is not None and apply_edit(city, change)
    try:
        lifted = city.store.transact(_lift_pause, city.act(), city.config.city.name if resumed else None)
    except LampError:
        if resumed and change is not None:
            edit.apply(edit.Edit(change.file, change.after, change.before))
        raise
    return [*(["pause"] if lifted else []), *(["suspension"] if resumed else [])]


def _lift_pause(tx: Tx, act: Act, resumed: str | None) -> bool:
    """In the same transaction the event about a suspension that was lifted, under the city's name."""
    if resumed is not None:
        tx.events.append(act.event("city.resumed", subject=resumed))
    return editing.resume(tx, act=act)


def switch_rig(city: OpenCity, name: str, *, suspended: bool) -> bool:
    changed = apply_edit(city, edit.suspend_rig(editable(city), name, suspended=suspended))
    if changed:
        _tell(city, "rig.suspended" if suspended else "rig.resumed", name)
    return changed


def add_rig(city: OpenCity, path: Path, *, name: str | None, prefix: str | None, topology: str | None) -> Rig:
    """Raises Conflict if the name is taken, ConfigInvalid if the prefix is; NotEditable, CopiedCity."""
    wanted = name or path.name
    known = editable(city).city
    if known.rig(wanted) is not None:
        raise Conflict(f"There is a rig `{wanted}` already.", hint="Give it another --name.")
    inside = path.is_relative_to(known.root)
    row: dict[str, object] = {"name": wanted, "path": str(path.relative_to(known.root) if inside else path)}
    row |= {key: value for key, value in {"prefix": prefix, "topology": topology}.items() if value}
    apply_edit(city, edit.add_row(city.paths.config, "rigs", row))
    added = load_city(city.paths.root, env=city.settings.env).city.rig(wanted)
    if added is None:
        raise Conflict(f"Rig `{wanted}` was added but is not there.", hint="Look at city.toml and its fragments.")
    _tell(city, "rig.added", wanted)
    return added


class NotEditable(LampError):
    """Raised instead of editing a city.toml that cannot be loaded."""

    kind = Kind.USAGE

    def __init__(self, error: LampError) -> None:
        super().__init__(
            f"Nothing was changed, because this command edits city.toml, which is broken:\n{error.message}",
            hint="Mend the file first; `lamp config check` looks at it. `lamp pause` and `lamp stop` work without it.",
        )


def editable(city: OpenCity) -> LoadedCity:
    """Load the files as they are now. Raises NotEditable, CopiedCity."""
    city.need_own()
    try:
        return city.load_config()
    except LampError as error:
        raise NotEditable(error) from error


def apply_edit(city: OpenCity, change: edit.Edit) -> bool:
    """Write the edit; False if it changes nothing. If the configuration is then invalid, restore the file and raise."""
    if not change.changes:
        return False
    edit.apply(change)
    try:
        load_city(city.paths.root, env=city.settings.env)
    except LampError:
        edit.apply(edit.Edit(change.file, change.after, change.before))
        raise
    return True


def _tell(city: OpenCity, event_type: str, subject: str) -> None:
    fact = city.act().event(event_type, subject=subject)
    city.store.transact(lambda tx: tx.events.append(fact))

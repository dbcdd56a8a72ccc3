"""Commands that change city.toml: the user's own text, in place, checked before it counts."""

from pathlib import Path

from lamplighter.adapters.files import edit
from lamplighter.adapters.files.layers import load_city
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.model import Rig
from lamplighter.kit.errors import Conflict, LampError


def switch_city(city: OpenCity, *, suspended: bool) -> bool:
    """Suspend or resume the whole city; False when it was so already."""
    changed = apply_edit(city, edit.suspend_city(city.config, suspended=suspended))
    if changed:
        _tell(city, "city.suspended" if suspended else "city.resumed", city.config.city.name)
    return changed


def switch_rig(city: OpenCity, name: str, *, suspended: bool) -> bool:
    changed = apply_edit(city, edit.suspend_rig(city.config, name, suspended=suspended))
    if changed:
        _tell(city, "rig.suspended" if suspended else "rig.resumed", name)
    return changed


def add_rig(city: OpenCity, path: Path, *, name: str | None, prefix: str | None, topology: str | None) -> Rig:
    """Raises Conflict when the name, the directory or the prefix is taken."""
    wanted = name or path.name
    known = city.config.city
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


def apply_edit(city: OpenCity, change: edit.Edit) -> bool:
    """Write the edit; if the configuration is then no longer right, the file is put back and the problem told."""
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

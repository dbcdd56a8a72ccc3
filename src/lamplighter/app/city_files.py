"""Reads and edits city.toml: the user's text is changed in place, and restored if the result is invalid."""

from pathlib import Path

from lamplighter.adapters.files import edit
from lamplighter.adapters.files.automations import text_read
from lamplighter.adapters.files.layers import load_city
from lamplighter.adapters.files.toml import parse
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.tree import Problem
from lamplighter.kit.errors import Conflict, LampError, NotFound
from lamplighter.kit.records import record
from lamplighter.ports.city_files import AddedRig, AutomationText, Edited, NewRig, NotEditable


@record
class FilesOfCity:
    """The files of an opened city."""

    city: OpenCity

    def load(self, *, strict: bool = False) -> LoadedCity:
        return load_city(self.city.paths.root, env=self.city.settings.env, strict=strict)

    def automation_text(self, path: str) -> AutomationText:
        try:
            text = text_read(Path(path))
        except (OSError, UnicodeDecodeError) as error:
            raise NotFound(f"{path} cannot be read.", hint="Is it still there, and a text?") from error
        found = parse(text, path)
        return AutomationText(text, found.line if isinstance(found, Problem) else found.lines(("automation",)))

    def suspend_city(self, *, suspended: bool) -> Edited:
        return self._apply(edit.suspend_city(self._editable(), suspended=suspended))

    def suspend_rig(self, name: str, *, suspended: bool) -> Edited:
        return self._apply(edit.suspend_rig(self._editable(), name, suspended=suspended))

    def suspend_agent(self, name: str, *, suspended: bool) -> Edited:
        return self._apply(edit.suspend_agent(self._editable(), name, suspended=suspended))

    def add_rig(self, rig: NewRig) -> AddedRig:
        wanted = rig.name or rig.path.name
        known = self._editable().city
        if known.rig(wanted) is not None:
            raise Conflict(f"There is a rig `{wanted}` already.", hint="Give it another --name.")
        there = next((one for one in known.rigs if known.rig_path(one).resolve() == rig.path.resolve()), None)
        if there is not None:
            raise Conflict(
                f"`{rig.path}` is the directory of rig `{there.name}` already.",
                hint="Two rigs in one directory would work on the same files; `lamp rig list` shows them.",
            )
        inside = rig.path.is_relative_to(known.root)
        row: dict[str, object] = {
            "name": wanted,
            "path": str(rig.path.relative_to(known.root) if inside else rig.path),
        }
        row |= {key: value for key, value in {"prefix": rig.prefix, "topology": rig.topology}.items() if value}
        edited = self._apply(edit.add_row(self.city.paths.config, "rigs", row))
        added = self.load().city.rig(wanted)
        if added is None:
            raise Conflict(f"Rig `{wanted}` was added but is not there.", hint="Look at city.toml and its fragments.")
        return AddedRig(added, edited)

    def _editable(self) -> LoadedCity:
        """Load the files as they are now. Raises NotEditable, CopiedCity."""
        self.city.need_own()
        try:
            return self.load()
        except LampError as error:
            raise NotEditable(error) from error

    def _apply(self, change: edit.Edit) -> Edited:
        """Write the edit; if the configuration is then invalid, restore the file and raise."""

        def undo() -> None:
            edit.apply(edit.Edit(change.file, change.after, change.before))

        if change.changes:
            edit.apply(change)
            try:
                self.load()
            except LampError:
                undo()
                raise
        return Edited(change.changes, undo)

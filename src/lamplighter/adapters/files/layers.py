"""Loads a city from its file, fragments, topologies and environment into one checked value that knows its sources."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from lamplighter.adapters.files.automations import FOLDER as AUTOMATIONS
from lamplighter.adapters.files.digest import digest_of, files_under
from lamplighter.adapters.files.prompts import NamedFiles
from lamplighter.adapters.files.texts import DiskTexts, KeptTexts, Texts
from lamplighter.adapters.files.toml import load
from lamplighter.adapters.files.topologies import Fetch, Shelf
from lamplighter.domain.city.check import check_changes, check_city, check_tables, check_templates
from lamplighter.domain.city.decode import build as build_of
from lamplighter.domain.city.decode import read
from lamplighter.domain.city.environment import overridden
from lamplighter.domain.city.expand import Ground, expand, settle, with_whole_rows
from lamplighter.domain.city.loaded import LoadedCity, Sources
from lamplighter.domain.city.merge import merge_files
from lamplighter.domain.city.model import City, TopologyFile
from lamplighter.domain.city.paths import BEADS_DIR, UNUSED_BEADS_DIR, from_city
from lamplighter.domain.city.topologies import Topology, check_topology, references
from lamplighter.domain.city.tree import ConfigInvalid, Findings, Origin, Place, Problem, Table
from lamplighter.kit.errors import NotFound
from lamplighter.kit.nearest import did_you_mean

CITY_FILE = "city.toml"
PACK_FILE = "pack.toml"


def load_city(
    root: Path,
    *,
    env: Mapping[str, str],
    extra: Sequence[Path] = (),
    strict: bool = False,
    fetch: Fetch = Fetch.MISSING,
) -> LoadedCity:
    """Raises ConfigInvalid with all problems, NotFound when there is no city; `strict` makes warnings problems.

    `extra` files are merged after the included ones. `fetch` says when topologies are fetched from git.
    """
    root = root.resolve()
    if not (root / CITY_FILE).is_file():
        raise NotFound(
            f"There is no {CITY_FILE} in {root}.", hint="Make a city with `lamp init`, or name one with `--city`."
        )
    texts = DiskTexts()
    loaded = _Load(root, env, fetch, texts).run(extra, strict=strict)
    return replace(loaded, revision=revision_of(loaded.sources, root), texts=texts.seen, answers=texts.answers)


def load_kept(root: Path, texts: Mapping[Path, bytes], revision: str, *, env: Mapping[str, str]) -> LoadedCity:
    """Load the configuration from kept texts, by the same rules, without fetching. Raises ConfigInvalid."""
    loaded = _Load(root.resolve(), env, Fetch.NEVER, KeptTexts(texts)).run((), strict=False)
    return replace(loaded, revision=revision, texts=texts)


@dataclass
class _Load:
    """One load of a city; collects its problems, files and topologies."""

    root: Path
    env: Mapping[str, str]
    fetch: Fetch
    texts: Texts
    found: Findings = field(default_factory=Findings)
    files: list[Path] = field(default_factory=list)
    topologies: dict[Path, Topology | None] = field(default_factory=dict)

    def run(self, extra: Sequence[Path], *, strict: bool) -> LoadedCity:
        base = self._read(self.root / CITY_FILE, "city", City)
        if base is not None and not self.texts.read(self.root / CITY_FILE).strip():
            # What a full disk or a save under way leaves behind; taken at its word, it would stop every agent.
            self.found.problems.append(Problem(CITY_FILE, "", "is empty; a city has at least a `[workspace]`"))
            base = None
        if base is None:
            raise ConfigInvalid(self.found.problems)
        merged = merge_files(base, list(self._fragments(base, extra)), self.root, self.found)
        merged = overridden(merged, self.env, self.found)
        told = len(self.found.problems)
        ground = Ground(self.root, self._ground(merged))
        whole = len(self.found.problems) == told
        expanded = expand(merged, ground, self.found)
        city = settle(expanded, ground, self.found)
        check_changes(merged, self.found)
        check_tables(expanded, self.found)
        if city is None:  # rows are not whole; what stands in the others is checked all the same
            self._check(settle(with_whole_rows(expanded), ground, Findings()), with_whole_rows(expanded), whole=whole)
        else:
            self._check(city, expanded, whole=whole)
            self._tell_of_later_files(base)
            if merged.get("beads") is None and self.texts.is_directory(self.root / BEADS_DIR):
                self.found.remark(base.at("beads"), UNUSED_BEADS_DIR)
            named = self._named_files(city, expanded)
        if city is None or self.found.problems or (strict and self.found.notes):
            raise ConfigInvalid(dict.fromkeys([*self.found.problems, *(self.found.notes if strict else ())]))
        return LoadedCity(
            city=city,
            table=expanded,
            warnings=(*self.found.notes, *self.found.remarks),
            sources=self._sources(city, named),
            revision="",
            prompts=named.prompts,
            contents=named.contents,
        )

    def _check(self, city: City | None, expanded: Table, *, whole: bool) -> None:
        if city is not None:
            check_city(city, expanded, self.found if whole else Findings())
            check_templates(city, expanded, self.found)
            self._check_zone(city, expanded)

    def _tell_of_later_files(self, base: Table) -> None:
        if self.texts.is_file(self.root / PACK_FILE):
            self.found.remark(base.place, f"{PACK_FILE} beside it is of a later version of Gas City and is not read")

    def _read(self, path: Path, layer: str, section: type) -> Table | None:
        """The table of one file, with its structure checked; None if the file as a whole is unusable."""
        name = _shown(path, self.root)
        self.files.append(path)
        document = load(path, name, self.texts.read)
        if isinstance(document, Problem):
            self.found.problems.append(document)
            return None
        place = Place(Origin(layer, name, path.parent, document.lines))
        return read(section, document.tree, place, self.found)

    def _fragments(self, base: Table, extra: Sequence[Path]) -> Iterator[Table]:
        included = [Path(os.path.normpath(self.root / from_city(name))) for name in base.get("include", ())]
        for path in [*included, *(path.absolute() for path in extra)]:
            if path in self.files:
                self.found.wrong(base.at("include"), f"`{_shown(path, self.root)}` is included twice")
            elif path in included and not self.texts.is_file(path):
                self.found.wrong(base.at("include"), f"there is no file `{_shown(path, self.root)}`")
                self.files.append(path)
            elif (table := self._read(path, "fragment", City)) is not None:
                yield table

    def _ground(self, merged: Table) -> dict[str, Topology]:
        """Every topology that the city or a rig refers to, by that reference."""
        shelf = Shelf(self.root, merged.named("topologies"), self.fetch, self.env, self.found, self.texts)
        workspace = merged.get("workspace")
        scopes = [*([workspace] if workspace is not None else []), *merged.tables("rigs")]
        known: dict[str, Topology] = {}
        for scope in scopes:
            for name in references(scope):
                if name not in known:
                    place = scope.at("topology" if scope.get("topology") == name else "topologies")
                    topology = self._topology(name, self.root, place, shelf, ())
                    if topology is not None:
                        known[name] = topology
        return known

    def _topology(
        self, reference: str, base: Path, place: Place, shelf: Shelf, trail: tuple[Path, ...]
    ) -> Topology | None:
        located = shelf.locate(reference, base, place)
        if located is None:
            return None
        directory = self.texts.resolved(located)
        if directory in trail:
            circle = " → ".join(_shown(path, self.root) for path in (*trail[trail.index(directory) :], directory))
            self.found.wrong(place, f"topologies include each other in a circle: {circle}")
            return None
        if directory not in self.topologies:
            self.topologies[directory] = self._opened(reference, directory, place, shelf, trail)
        return self.topologies[directory]

    def _opened(
        self, reference: str, directory: Path, place: Place, shelf: Shelf, trail: tuple[Path, ...]
    ) -> Topology | None:
        file = directory / "topology.toml"
        if not self.texts.is_file(file):
            names = shelf.named
            if self.texts.is_file(directory / PACK_FILE):
                told = f"`{reference}` is a pack of a later version of Gas City ({PACK_FILE}), which is not read here"
                self.found.wrong(place, f"{told}; topologies have a topology.toml")
                return None
            self.found.wrong(
                place,
                f"`{reference}` is not a topology: there is no {_shown(file, self.root)}"
                f"{did_you_mean(reference, names)}",
            )
            return None
        table = self._read(file, "topology", TopologyFile)
        if table is None:
            return None
        if build_of(table, self.found) is None:
            return None
        meta: Table = table.get("topology")
        included = (
            self._topology(name, directory, meta.at("includes"), shelf, (*trail, directory))
            for name in meta.get("includes", ())
        )
        topology = Topology(directory, table, tuple(part for part in included if part is not None))
        check_topology(topology, self.found)
        return topology

    def _check_zone(self, city: City, expanded: Table) -> None:
        zone = city.workspace.timezone
        if not zone:
            return
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            near = did_you_mean(zone, available_timezones())
            self.found.wrong(expanded.get("workspace").at("timezone"), f"`{zone}` is not a time zone{near}")

    def _named_files(self, city: City, expanded: Table) -> NamedFiles:
        named = NamedFiles(self.root, self.found, self.texts)
        for agent, table in zip(city.agents, expanded.tables("agents"), strict=True):
            named.add(agent, table)
        named.check(city)
        return named

    def _sources(self, city: City, named: NamedFiles) -> Sources:
        layers = [*city.layers.city, *(layer for rig in city.layers.rigs.values() for layer in rig)]
        beside = self.root / AUTOMATIONS  # the root itself is no source: most of what lies there is none
        directories = dict.fromkeys([*self.topologies, *layers, beside, *named.directories])
        return Sources(tuple(dict.fromkeys([*self.files, *named.files])), tuple(directories))


def revision_of(sources: Sources, root: Path) -> str:
    """One digest of all source files of a city."""
    inside = (path for directory in sources.directories for path in files_under(directory))
    return digest_of([*sources.files, *inside], root)


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()

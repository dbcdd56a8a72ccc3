"""Reads the files that agents name: prompts with the partials beside them, and set-up scripts; each only once."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from lamplighter.adapters.files.texts import Texts, text_digest
from lamplighter.domain.city.loaded import Prompt, rendered
from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.tree import Findings, Place, Problem, Table
from lamplighter.kit.text import Template, TemplateError, parse

PARTIALS = "shared"


@dataclass
class NamedFiles:
    root: Path
    found: Findings
    texts: Texts
    prompts: dict[str, Prompt] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    _partials: dict[Path, tuple[tuple[Template, ...], str]] = field(default_factory=dict)

    def add(self, agent: Agent, table: Table) -> None:
        """Read the files of this agent. A prompt that is missing or no template is only a warning: the agent starts
        without one, or with the text as it is written.
        """
        if agent.prompt_template and agent.prompt_template not in self.contents:
            self._prompt(agent.prompt_template, table.at("prompt_template"))
        if agent.session_setup_script and agent.session_setup_script not in self.contents:
            self._script(agent.session_setup_script, table.at("session_setup_script"))

    def _script(self, name: str, place: Place) -> None:
        path = self.root / name
        self.files.append(path)
        digest = text_digest(self.texts, path)
        if digest is None:
            self.found.note(place, f"there is no script `{name}`")
        self.contents[name] = digest or ""

    def _prompt(self, name: str, place: Place) -> None:
        path = self.root / name
        self.files.append(path)
        self.contents[name] = ""
        try:
            content = self.texts.read(path)
        except OSError:
            self.found.note(place, f"there is no prompt file `{name}`; the prompt is empty")
            return
        text = content.decode(errors="replace")
        if text.encode() != content:
            self.found.note(place, f"prompt file `{name}` is not UTF-8 text; what cannot be read is replaced")
        partials, digest = self._beside(path.parent)
        self.contents[name] = hashlib.sha256(f"{text}\0{digest}".encode()).hexdigest()
        self.prompts[name] = Prompt(text, self._parsed(text, path, "; it is used as it is written"), partials)

    def _beside(self, directory: Path) -> tuple[tuple[Template, ...], str]:
        if directory not in self._partials:
            self._partials[directory] = self._read_partials(directory / PARTIALS)
        return self._partials[directory]

    def _read_partials(self, directory: Path) -> tuple[tuple[Template, ...], str]:
        self.directories.append(directory)
        total = hashlib.sha256()
        parsed = []
        for path in self.texts.partials(directory):
            try:
                text = self.texts.read(path).decode()
            except (OSError, UnicodeDecodeError):
                self.found.notes.append(Problem(self._shown(path), "", "cannot be read as UTF-8 text; it is left out"))
                continue
            total.update(f"{path.name}\0{text}\0".encode())
            template = self._parsed(text, path, "; it is left out")
            if template is not None:
                parsed.append(template)
        return tuple(parsed), total.hexdigest()

    def _parsed(self, text: str, path: Path, outcome: str) -> Template | None:
        try:
            return parse(text, file=self._shown(path))
        except TemplateError as error:
            self.found.notes.append(Problem(error.file, "", error.reason + outcome, error.line))
            return None

    def check(self, city: City) -> None:
        """Render each prompt for the first agent that names it, and warn of those that cannot be rendered."""
        first = {agent.prompt_template: agent for agent in reversed(city.agents) if agent.prompt_template}
        for name, agent in first.items():
            known = self.prompts.get(name)
            if known is None:
                continue
            try:
                rendered(known, city, agent, agent.qualified_name, env=agent.env)
            except TemplateError as error:
                reason = f"{error.reason}; the prompt {name} is used as it is written"
                self.found.notes.append(Problem(error.file, "", reason, error.line))

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

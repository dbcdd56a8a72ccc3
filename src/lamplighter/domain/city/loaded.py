"""A city that passed every check, with the files and values it was loaded from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lamplighter.domain.city.fingerprint import Fingerprint, fingerprint
from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.tree import Problem, Table
from lamplighter.domain.city.variables import NO_REPOSITORY, Branches, prompt_functions, prompt_variables
from lamplighter.kit.text import Missing, Template, render


@dataclass(frozen=True)
class Sources:
    """What a city was loaded from: single files, and directories of which every file counts."""

    files: tuple[Path, ...]
    directories: tuple[Path, ...]


@dataclass(frozen=True)
class Prompt:
    """A prompt file, parsed, with the partials beside it."""

    template: Template
    partials: tuple[Template, ...] = ()


@dataclass(frozen=True)
class LoadedCity:
    """`table` has the place of every value; `contents` has a digest of each file that agents name."""

    city: City
    table: Table
    warnings: tuple[Problem, ...]
    sources: Sources
    revision: str
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[Path, bytes] = field(default_factory=dict, repr=False, compare=False)
    """The contents of the files it was loaded from, as they were at that time."""

    def fingerprint(self, agent: Agent) -> Fingerprint:
        return fingerprint(self.city, agent, self.contents)

    def prompt(self, agent: Agent, instance: str, *, env: Mapping[str, str], branches: Branches = NO_REPOSITORY) -> str:
        """The rendered prompt, empty when the agent has none; unknown variables render empty. Raises TemplateError."""
        known = self.prompts.get(agent.prompt_template)
        if known is None:
            return ""
        data = prompt_variables(self.city, agent, instance, env=env, branches=branches)
        return render(
            known.template, data, functions=prompt_functions(self.city), partials=known.partials, missing=Missing.EMPTY
        )

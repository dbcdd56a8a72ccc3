"""A city that passed every check, with the files and values it was loaded from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamplighter.domain.city.fingerprint import Fingerprint, fingerprint
from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.tree import Problem, Table
from lamplighter.domain.city.variables import NO_REPOSITORY, Branches, prompt_functions, prompt_variables
from lamplighter.kit.records import record
from lamplighter.kit.text import Missing, Template, TemplateError, render


@record
class Sources:
    """What a city was loaded from: single files, and directories of which every file counts."""

    files: tuple[Path, ...]
    directories: tuple[Path, ...]


@record
class Prompt:
    """A prompt file with the partials beside it; `template` is None if the text is no template that can be parsed."""

    text: str
    template: Template | None = None
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
    answers: Mapping[tuple[str, str], Any] = field(default_factory=dict, repr=False, compare=False)
    """What was asked of the disk, by question and path; empty if it was not loaded from there."""

    def fingerprint(self, agent: Agent) -> Fingerprint:
        return fingerprint(self.city, agent, self.contents)

    def prompt(self, agent: Agent, instance: str, *, env: Mapping[str, str], branches: Branches = NO_REPOSITORY) -> str:
        """The rendered prompt, empty when the agent has none; unknown variables render empty.

        A prompt that cannot be rendered is used as it is written: it must not keep an agent from starting.
        """
        known = self.prompts.get(agent.prompt_template)
        if known is None:
            return ""
        try:
            return rendered(known, self.city, agent, instance, env=env, branches=branches)
        except TemplateError:
            return known.text


def rendered(
    known: Prompt, city: City, agent: Agent, instance: str, *, env: Mapping[str, str],
    branches: Branches = NO_REPOSITORY,
) -> str:  # fmt: skip
    """Raises TemplateError."""
    if known.template is None:
        return known.text
    data = prompt_variables(city, agent, instance, env=env, branches=branches)
    return render(
        known.template, data, functions=prompt_functions(city), partials=known.partials, missing=Missing.EMPTY
    )

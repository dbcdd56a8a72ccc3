"""`lamp config`: the configuration that city.toml and the files it names result in."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group
from lamplighter.kit.errors import UsageError

config = group("The configuration: one value from many layers, each with its place.")


@config.command("check")
@click.option("--strict", is_flag=True, help="Notes count as problems.")
def check(strict: bool) -> None:  # noqa: FBT001  click passes flags by name
    """Whether the configuration is right; every problem at once, each with file, key and line."""
    opened = city(tells_problems=True)
    loaded = opened.load_config(strict=strict)
    notes = [str(note) for note in loaded.warnings]
    agents, rigs = len(loaded.city.agents), len(loaded.city.rigs)
    text = "\n".join(
        [*(f"note: {note}" for note in notes), f"The configuration is right: {agents} agents, {rigs} rigs."]
    )
    output.record({"valid": True, "notes": notes, "revision": loaded.revision, "agents": agents, "rigs": rigs}, text)


@config.command("show")
@click.option("--provenance", is_flag=True, help="Say beside each value where it was set.")
def show(provenance: bool) -> None:  # noqa: FBT001  click passes flags by name
    """The whole configuration as one file: fragments, topologies and patches in place."""
    from lamplighter.domain.city.show import show as shown

    loaded = city().config
    text = shown(loaded, provenance=provenance)
    output.record({"revision": loaded.revision, "toml": text}, text.rstrip("\n"))


@config.command("explain")
@click.argument("key", required=False)
@click.option("--agent", metavar="NAME", help="Everything that is set for this agent.")
def explain(key: str | None, agent: str | None) -> None:
    """Which layer, file and line set KEY (`daemon.max_restarts`, or a whole section), or an agent's values."""
    from lamplighter.domain.city.show import explain as explain_key
    from lamplighter.domain.city.show import explain_agent

    if (key is None) == (agent is None):
        raise UsageError("Name a key, or an agent with --agent.", hint="Such as `lamp config explain daemon`.")
    loaded = city().config
    found = explain_agent(loaded, agent) if agent is not None else explain_key(loaded, key or "")
    rows = [
        {"key": entry.key, "value": entry.value, "layer": entry.layer, "file": entry.file or None, "line": entry.line}
        for entry in found
    ]
    columns = {"KEY": "key", "VALUE": "value", "LAYER": "layer", "FILE": "file", "LINE": "line"}
    output.table(rows, columns, empty="Nothing is set.")


def command_for(_name: str) -> click.Command:
    return config

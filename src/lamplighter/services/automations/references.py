"""Whether what an automation names is there: refused where one is written, told where it is shown."""

from collections.abc import Iterable
from functools import cache

from lamplighter.domain.automations.decode import Invalid
from lamplighter.domain.automations.model import Automation, Formula
from lamplighter.domain.automations.references import Known, unknown_names
from lamplighter.domain.beads.formulas import plan
from lamplighter.domain.city.planners import cannot_plan, mode_refused, not_spoken_to
from lamplighter.domain.city.providers import known_providers
from lamplighter.domain.secrets import is_name
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.services.automations import snapshots, tokens
from lamplighter.services.automations.editing import DefinitionInvalid
from lamplighter.services.configurations import known as chosen_ones
from lamplighter.services.context import Context
from lamplighter.services.runs.spoken import no_conversation
from lamplighter.store.automations import AutomationRow
from lamplighter.store.tx import Tx


def known(tx: Tx, ctx: Context) -> Known:
    """What automations can name now. Each formula is read at most once."""
    city = ctx.city

    reads = None if ctx.formulas is None else cache(ctx.formulas.read)

    def formula(action: Formula, rig: str | None) -> str:
        if reads is None:
            return ""
        try:
            plan(reads(action.formula, rig), title=None, values=action.variables)
        except UsageError as error:  # its file is right, and what it is given is not
            return f"{_sentence(error.message)}; `vars` of the automation gives them"
        except LampError as error:
            return _sentence(error.message)
        return ""

    configurations = chosen_ones(tx)
    return Known(
        configurations=list(configurations),
        presets=list(known_providers(city)),
        rigs=[rig.name for rig in city.rigs],
        pools=[agent.qualified_name for agent in city.agents],
        formula=formula,
        connections={row.name: row.provider for row in tx.connections.all()},
        useless=tokens.useless(tx),
        secrets=[row.name for row in tx.secrets.all() if is_name(row.name)],
        session=lambda name: no_conversation(tx, name),
        agent=lambda name, rig: not_spoken_to(city, name, rig),
        cannot_plan=lambda action: cannot_plan(city, action, configurations),
        mode_refused=lambda action: mode_refused(city, action, configurations),
    )


def refuse_unknown(tx: Tx, row: AutomationRow, ctx: Context, *, before: Automation | None = None) -> None:
    """Refuse an automation that names what is not there, unless `before`, the one it was, named the same.

    Raises DefinitionInvalid.
    """
    found = known(tx, ctx)
    automation = snapshots.of_row(row)
    told = [] if before is None else unknown_names(before, found)
    wrong = [one for one in unknown_names(automation, found) if one not in told]
    if wrong:
        raise DefinitionInvalid(Invalid(automation.scoped_name, tuple(wrong)))


def warnings(tx: Tx, rows: Iterable[AutomationRow], ctx: Context) -> dict[str, list[str]]:
    """What each automation names that is not there, by its id; those that name only what is there are left out."""
    found = known(tx, ctx)
    told = {}
    for row in rows:
        if row.definition is not None and (wrong := unknown_names(snapshots.of_row(row), found)):
            told[row.id] = [str(one) for one in wrong]
    return told


def _sentence(message: str) -> str:
    """A message in one line, without its full stop."""
    return "; ".join(line.strip() for line in message.splitlines() if line.strip()).rstrip(".")

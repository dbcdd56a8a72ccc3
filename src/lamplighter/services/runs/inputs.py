"""What a run was given: its automation as it was when it fired, and what its trigger brought."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.decode import decode_snapshot
from lamplighter.domain.automations.shape import to_file
from lamplighter.kit.masking import MASK, is_secret, masked
from lamplighter.kit.shapes import given
from lamplighter.kit.toml_writing import dumped
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read
from lamplighter.services.runs.queries import RUN_ID
from lamplighter.store.tx import Tx


@dataclass(frozen=True)
class InputsView:
    """`toml` is null where this version of the program cannot read the definition."""

    id: str
    automation: str
    toml: str | None = given("The automation.toml that says what the run was started with.")
    payload: Mapping[str, Any] | None = given("What the trigger brought, with secrets masked; null for nothing.")


@dataclass(frozen=True)
class ShowInputs:
    """What a run was given: its definition as it was then, and the data of its trigger."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


def show_inputs(tx: Tx, ask: ShowInputs, _ctx: Context) -> InputsView:
    """Raises RunUnknown."""
    row = tx.runs.get(ask.run)
    if row is None:
        raise RunUnknown(ask.run)
    event = None if row.trigger_event is None else tx.trigger_events.get(row.trigger_event)
    payload = None if event is None or not event.payload else without_secrets(event.payload)
    return InputsView(row.id, row.automation, _toml(row.definition), payload)


def _toml(definition: Mapping[str, Any]) -> str | None:
    try:
        return dumped(to_file(decode_snapshot(definition)))
    except ValueError:
        return None


def without_secrets(value: Any) -> Any:
    """The same without secrets: those that a key names, and passwords in addresses."""
    if isinstance(value, Mapping):
        return {str(key): MASK if is_secret(str(key)) and one else without_secrets(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(one) for one in value]
    return masked(value) if isinstance(value, str) else value


INPUTS = read("run.inputs", Verb.READ, ShowInputs, InputsView, show_inputs, http=Http("GET", "/runs/{run}/inputs"))

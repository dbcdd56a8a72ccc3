"""Domain values as the JSON shapes of the API."""

from typing import Any

from lamplighter.ports.runs import Completed


def completed(done: Completed) -> dict[str, Any]:
    return {"run": done.run, "state": done.state.value, "replayed": done.replayed}

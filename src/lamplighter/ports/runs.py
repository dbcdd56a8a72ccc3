"""The error for a run that does not exist, shared by all layers that look for runs."""

from lamplighter.kit.errors import NotFound


class RunUnknown(NotFound):
    def __init__(self, run: str) -> None:
        super().__init__(f"There is no run {run}.", hint="`lamp run list` shows those there are.")

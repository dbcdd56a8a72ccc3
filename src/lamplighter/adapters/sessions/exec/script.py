"""Calls a provider script, as `<script> <op> [session] [args]`, each time with a time limit."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.processes.child import Call, Ended, NotStarted, TookTooLong, run_child
from lamplighter.kit.errors import LampError
from lamplighter.ports.sessions import ProviderUnavailable

CALL_LIMIT = timedelta(seconds=30)
START_LIMIT = timedelta(seconds=120)
_UNKNOWN_OP = 2


class ScriptFailed(LampError):
    """The script failed; its standard error is the reason."""


@dataclass
class Script:
    """`unknown` holds the operations that the script does not know, so that each is tried only once."""

    path: Path
    env: dict[str, str]
    unknown: set[str] = field(default_factory=set)

    async def call(self, *words: str, stdin: str = "", within: timedelta = CALL_LIMIT) -> str | None:
        """Its output; None for an operation it does not know. Raises ScriptFailed and ProviderUnavailable."""
        operation = words[0]
        if operation in self.unknown:
            return None
        ended = await self._ended(words, stdin.encode(), within)
        if ended.exit_code == _UNKNOWN_OP:
            self.unknown.add(operation)
            return None
        if ended.exit_code:
            said = ended.complaint.decode(errors="replace").strip()[-500:]
            raise ScriptFailed(f"{self.path.name} {operation} failed: {said or f'status {ended.exit_code}'}")
        return ended.output.decode(errors="replace")

    async def _ended(self, words: tuple[str, ...], stdin: bytes, within: timedelta) -> Ended:
        try:
            return await run_child(Call((str(self.path), *words), None, self.env, within, stdin=stdin))
        except NotStarted as error:
            raise ProviderUnavailable(
                f"The provider script {self.path} cannot be run: {error.reason}.",
                hint="Check [session] provider in city.toml, and that the script may be executed.",
            ) from error
        except TookTooLong:
            what = f"{self.path.name} {words[0]}"
            raise ProviderUnavailable(f"{what} did not answer within {within.total_seconds():g} s.") from None

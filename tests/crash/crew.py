"""The hand that lets controllers and workers live and die, and keeps what it needs to know of their deaths."""

from dataclasses import dataclass, field
from pathlib import Path

from lamplighter.testing.processes import Child, Children

LIVES = Path(__file__).with_name("lives.py")


@dataclass
class JobPool:
    """`deaths` has when each process was killed, by its id."""

    child: Child
    lit: dict[str, int] = field(default_factory=dict)
    deaths: dict[int, float] = field(default_factory=dict)

    @staticmethod
    def hired(processes: Children) -> "JobPool":
        return JobPool(processes.script(LIVES))

    def live(self, slot: str, city: Path, kind: str = "worker", name: str = "", point: str = "") -> None:
        """Begun, not up yet: `up` waits for that."""
        self.lit.pop(slot, None)
        self.child.say(f"live {slot} {city} {kind} {name or '-'} {point}")

    def up(self, slot: str) -> int:
        """Its process id, once it is at work."""
        while slot not in self.lit:
            self._hear()
        return self.lit[slot]

    def kill(self, slot: str) -> None:
        self._end("kill", slot)

    def stop(self, slot: str) -> int:
        """The status it left with."""
        return self._end("stop", slot)

    def crashed(self, slot: str) -> int:
        """Wait for one that kills itself."""
        return self._end("wait", slot)

    def _end(self, how: str, slot: str) -> int:
        self.child.say(f"{how} {slot}")
        while True:
            words = self._hear()
            if words[:2] == ["gone", slot]:
                self.deaths[int(words[2])] = float(words[4])
                return int(words[3])

    def _hear(self) -> list[str]:
        words = self.child.line().split()
        assert words, "the hand itself is gone"
        assert words[0] != "failed", f"{words[1]} could not live: see what it wrote"
        if words[0] == "lit":
            self.lit[words[1]] = int(words[2])
        return words

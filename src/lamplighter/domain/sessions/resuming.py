"""Whether a started agent goes on with the conversation it had before."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from lamplighter.kit.clock import from_rfc3339, rfc3339
from lamplighter.kit.records import record

QUICK = timedelta(seconds=60)
QUICK_DEATHS = 2
_STARTS_KEPT = 10


@record
class Conversed:
    """The conversation of an agent: its program, its name there if that was ours to choose, the mark in its first
    prompt, where the program worked, and when it was started with it.
    """

    program: str
    chosen: str
    mark: str
    work_dir: str
    starts: tuple[datetime, ...] = ()

    def started(self, now: datetime) -> "Conversed":
        return replace(self, starts=(*self.starts, now)[-_STARTS_KEPT:])

    def as_json(self) -> dict[str, Any]:
        return {
            "program": self.program,
            "chosen": self.chosen,
            "mark": self.mark,
            "work_dir": self.work_dir,
            "starts": [rfc3339(start) for start in self.starts],
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Conversed":
        """Raises KeyError, TypeError or ValueError for anything that was not written by `as_json`."""
        starts = tuple(from_rfc3339(start) for start in found["starts"])
        return cls(found["program"], found["chosen"], found["mark"], found["work_dir"], starts)


def may_go_on(before: Conversed, *, program: str, work_dir: str, now: datetime) -> bool:
    """Whether the conversation belongs to this start: the same program in the same place, and not one with which the
    program has died QUICK_DEATHS times in a row within QUICK of its start; it may be the conversation that kills it.
    """
    if (before.program, before.work_dir) != (program, work_dir):
        return False
    last = (*before.starts, now)[-(QUICK_DEATHS + 1) :]
    lives = [later - earlier for earlier, later in itertools.pairwise(last)]
    return len(lives) < QUICK_DEATHS or any(life >= QUICK for life in lives)

"""What the modes of an agent run let its program do, in words, for whoever has to choose one."""

from collections.abc import Sequence

from lamplighter.domain.sessions.presets.model import Mode, Preset

_MEANS = {
    Mode.APPROVAL: "it asks before it changes anything; nobody answers in a run, so it does what needs no approval",
    Mode.PLAN: "it reads and plans, and changes nothing",
    Mode.FULL_ACCESS: "it does whatever its user may do, without asking",
}


_NOT = "not with "


def modes_told(preset: Preset | None) -> list[str]:
    """A line for each mode: what it lets the program do, and whether a run can complete in it."""
    return [f"{mode}: {_means(mode, preset)}" for mode in Mode]


def offered(told: Sequence[str]) -> list[str]:
    """The modes, of those that `modes_told` told, in which a run can complete."""
    return [mode for mode, _, means in (line.partition(": ") for line in told) if not means.startswith(_NOT)]


def _means(mode: Mode, preset: Preset | None) -> str:
    if preset is None:
        return f"{_MEANS[mode]}."
    if mode in preset.refuses:
        return f"{_NOT}{preset.title}: {preset.refuses[mode]}."
    return f"{_MEANS[mode]}; {preset.title} can complete a run in it."

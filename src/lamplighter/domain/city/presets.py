"""The built-in providers: what `[providers]` would declare for each known agent program."""

from collections.abc import Mapping
from types import MappingProxyType

from lamplighter.domain.city.model import Provider
from lamplighter.domain.sessions.presets.catalogue import PRESETS

_ANGLE = "\u276f "  # the heavy angle that these programs print before their input line

NOT_DETECTED = frozenset({"shell"})  # a shell is always installed, and must not be chosen by default

_GAS_CITY: Mapping[str, Provider] = MappingProxyType(
    {
        "claude": Provider(
            display_name="Claude Code",
            command="claude",
            args=("--dangerously-skip-permissions",),
            ready_prompt_prefix=_ANGLE,
            ready_delay_ms=10_000,
            emits_permission_warning=True,
            process_names=("node", "claude"),
        ),
        "codex": Provider(
            display_name="Codex",
            command="codex",
            args=("--dangerously-bypass-approvals-and-sandbox",),
            prompt_mode="none",
            ready_delay_ms=3_000,
            process_names=("codex",),
        ),
        "gemini": Provider(
            display_name="Gemini",
            command="gemini",
            args=("--approval-mode", "yolo"),
            ready_delay_ms=5_000,
            process_names=("gemini",),
        ),
        "cursor": Provider(
            display_name="Cursor", command="cursor-agent", args=("-f",), process_names=("cursor-agent",)
        ),
        "copilot": Provider(
            display_name="Copilot",
            command="copilot",
            args=("--yolo",),
            ready_prompt_prefix=_ANGLE,
            ready_delay_ms=5_000,
            process_names=("copilot",),
        ),
        "amp": Provider(
            display_name="Amp", command="amp", args=("--dangerously-allow-all", "--no-ide"), process_names=("amp",)
        ),
        "opencode": Provider(
            display_name="OpenCode",
            command="opencode",
            ready_delay_ms=8_000,
            process_names=("opencode", "node", "bun"),
            env=MappingProxyType({"OPENCODE_PERMISSION": '{"*":"allow"}'}),
        ),
    }
)

# The order is the order of detection on PATH.
builtin_providers: Mapping[str, Provider] = MappingProxyType(
    {
        **_GAS_CITY,
        **{
            name: Provider(display_name=preset.title, command=preset.program, process_names=preset.process_names)
            for name, preset in PRESETS.items()
            if name not in _GAS_CITY
        },
    }
)

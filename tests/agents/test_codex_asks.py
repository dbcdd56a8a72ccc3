"""Codex in a terminal, at its own permission prompt: it goes on drawing there, and is seen as waiting all the same."""

from pathlib import Path

import pytest
from lamp_program import here
from programs import PROGRAMS
from tmux_towns import a_tmux_town, until

from lamplighter.testing.model_server import CallTool, ModelServer, Say

pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

COMMAND = "codex --disable daemon_auto_start --sandbox workspace-write --ask-for-approval on-request"
ASKS = CallTool(
    "exec_command",
    {"cmd": "touch lit", "sandbox_permissions": "require_escalated", "justification": "Shall the lamp be lit?"},
)


def test_codex_at_its_own_permission_prompt_is_in_the_inbox(tmp_path: Path) -> None:
    with ModelServer(ASKS, Say("Done.")) as model, a_tmux_town(PROGRAMS["codex"], model, tmp_path) as town:
        text = (town.root / "city.toml").read_text()
        city = text.replace('provider = "tmux"', 'provider = "tmux"\npermission_wait = "1s"')
        city = city.replace("[daemon]", '[daemon]\npatrol_interval = "1s"')
        (town.root / "city.toml").write_text(city + f'start_command = "{COMMAND}"\n')
        town.lamp("daemon", "start")
        until(lambda: "scripted-model" in town.screen(), town.screen)  # before that it ignores Enter
        town.lamp("agent", "nudge", "mayor", "Light the lamp.")

        def told() -> bool:
            items = here("inbox", "list", "--json", "--city", str(town.root)).json
            return any(one["kind"] == "waiting" and "touch lit" in one["sentence"] for one in items)

        until(told, town.screen)
        assert "waits at a permission prompt" in str(town.mayor["reason"])
        assert not (town.root / "lit").exists()

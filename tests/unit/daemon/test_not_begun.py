"""How a run ends whose session could not be started."""

from datetime import UTC, datetime

import pytest

from lamplighter.daemon.pipeline.agent_sessions import TAIL, not_begun
from lamplighter.daemon.pipeline.run_logins import NotSignedIn
from lamplighter.daemon.pipeline.workspaces import SetupFailed
from lamplighter.domain.city.run_plan import CannotRun
from lamplighter.domain.runs.model import RunState, Stage
from lamplighter.domain.sessions.logins import Login, LoginKey, LoginState
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.errors import LampError
from lamplighter.ports.sessions import SessionAlive, StartFailed
from lamplighter.ports.worktrees import GitFailed
from lamplighter.services.runs.review import Ending

LOGIN = Login(LoginKey("here", "claude", "/home/ada"), LoginState.REFUSED, datetime(2026, 1, 1, tzinfo=UTC))
NAME = SessionName("run_1")


@pytest.mark.parametrize(
    ("error", "state", "reason", "nothing_ran"),
    [
        (StartFailed(NAME, "no room"), RunState.FAILED, "not_started", True),
        (StartFailed(NAME, "it ended", output="lost"), RunState.FAILED, "not_started", False),
        (SessionAlive(NAME), RunState.FAILED, "not_started", True),
        (GitFailed("worktree add", "locked"), RunState.FAILED, "worktree_failed", False),
        (CannotRun("project_missing", "It is gone."), RunState.SKIPPED, "project_missing", False),
        (CannotRun("secret_locked", "It is locked."), RunState.FAILED, "secret_locked", False),
        (NotSignedIn("Claude Code", LOGIN), RunState.FAILED, "login", False),
    ],
)
def test_a_run_that_could_not_begin_ends_with_its_reason_and_whether_anything_ran(
    error: LampError, state: RunState, reason: str, *, nothing_ran: bool
) -> None:
    ending = not_begun(error)
    assert (ending.state, ending.reason, ending.nothing_ran) == (state, reason, nothing_ran)
    assert (ending.stage, ending.error) == (Stage.EXECUTION, error.message)
    assert ending.login == (LOGIN if isinstance(error, NotSignedIn) else None)


def test_the_end_of_what_a_program_wrote_is_kept() -> None:
    ending = not_begun(StartFailed(NAME, "it ended", output="x" * TAIL + "end"))
    assert (len(ending.output_tail), ending.output_tail[-4:]) == (TAIL, "xend")


def test_a_workspace_that_is_not_ready_says_itself_how_its_run_ends() -> None:
    ending = Ending(RunState.FAILED, "setup_failed", Stage.SETUP, error="npm ci failed")
    assert not_begun(SetupFailed(ending)) is ending

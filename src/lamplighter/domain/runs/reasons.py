"""Every reason that the state of an ended run may have, and what it means: the reference is made from it."""

from collections.abc import Mapping

from lamplighter.domain.runs.model import RunState

REASONS: Mapping[RunState, Mapping[str, str]] = {
    RunState.SUCCEEDED: {
        "": "the command ended with 0",
        "succeeded": "the agent completed the run with success",
        "wisp_closed": "the wisp of the formula is closed",
        "replied": "the agent's program has ended its turn of a conversation in Slack",
    },
    RunState.FAILED: {
        "exit_N": "the command ended with the exit code N",
        "failed": "the agent completed the run as failed",
        "timeout": "the command took longer than its `timeout` and was ended",
        "precheck_failed": "its `precheck` ended with neither 0 nor 75",
        "verify": "what it claimed was not verified",
        "interrupted": "nobody saw its end: the machine or its shim went down, or its city was copied",
        "node_lost": "its node was lost for longer than `[workers] lost_after`",
        "not_started": "its program could not be started; the error says why",
        "no_command": "its automation has no command any more",
        "no_prompt": "its automation has no prompt any more",
        "no_completion": "the agent's program ended without completing the run",
        "sandbox_dead": "its session is there, and the program in it is dead",
        "missing_session": "it was running without a session",
        "session_state_paused": "its session is paused",
        "session_state_missing": "its session is gone",
        "idle": "its session said nothing for as long as its `idle_timeout`",
        "budget": "it and the other runs of the day used more than a budget of the day; the error says which",
        "stuck": "it made the same call of a tool with the same result again and again (`stuck_after`)",
        "budget_cost": "it cost more than its budget",
        "budget_tokens": "it used more tokens than its budget",
        "budget_time": "it took longer than its budget",
        "worktree_failed": "git could not make its worktree",
        "session_missing": "the session or run that its automation names (`session`) is not there any more",
        "agent_missing": "the agent that its automation names (`agent`) is not in city.toml",
        "missing_configuration": "the configuration that it names is gone",
        "configuration_selection_failed": "no configuration could be chosen for it",
        "missing_context": "the automation, the trigger or the event that fired it is gone",
        "enrichment_failed": "what fired it has nothing to tell an agent",
        "rig_unknown": "its rig is not in city.toml",
        "preset_unknown": "there is no such preset",
        "not_headless": "its agent program cannot run without a terminal",
        "cannot_complete": "its agent program cannot complete runs",
        "budget_not_counted": "its agent program does not tell what its budget limits",
        "mode_not_offered": "its agent program does not offer the mode that it asks for",
        "effort_not_offered": "its agent program cannot be told to think with the effort that it asks for",
        "prompt_unreadable": "its `prompt_file` or one of its `includes` cannot be read",
        "connection_missing": "a connection that its automation lists has no token, any more",
        "secret_missing": "its environment refers to a secret that is not there",
        "secret_locked": "its environment refers to a secret that cannot be opened here (`lamp doctor` says why)",
        "program_missing": "its agent program is not installed",
        "variable_taken": "its environment sets a variable that belongs to Lamplighter",
        "cook_failed": "its formula could not be cooked; the error says why",
        "wisp_gone": "the wisp of the formula was deleted",
        "delivery_failed": "what belongs to it could not be delivered; the error says what",
    },
    RunState.NEEDS_HUMAN: {
        "needs_human": "the agent completed it with a task for a person",
        "question": "the agent asks a person something",
        "permission": "its program waited for a permission that nobody there could give (`[session] permission_wait`)",
        "plan": 'its plan waits for a person who approves, amends or rejects it (`approve = "plan"`)',
    },
    RunState.TIMED_OUT: {"deadline_exceeded": "it was not over at its `deadline`"},
    RunState.CANCELED: {
        "canceled": "a person canceled it",
        "replaced": 'a newer run took its place (`overlap = "replace"`)',
    },
    RunState.SKIPPED: {
        "nothing_to_do": "its `precheck` ended with 75",
        "project_missing": "the directory that it works in is not there",
        "disabled": "the automation is disabled",
        "left_out": "the automation is named in `automations.skip`",
        "paused": "the city is paused",
        "city_suspended": "the city is suspended",
        "rig_suspended": "its rig is suspended",
        "automation_suspended": "the automation is suspended",
        "login": "its agent program is not signed in (`lamp login list`)",
        "provider_limit": "the account of its agent program has reached a limit (`lamp login list`)",
        "budget": "nothing is left of a budget of the day; the error says which",
        "overlap": "a run of the automation was under way",
        "missed": "nobody was there at that time, and it is too late now (`catch_up`)",
    },
}
WAITS: Mapping[str, str] = {
    "login": "its agent program is not signed in (`lamp login list`)",
    "provider_limit": "the account of its agent program has reached a limit (`lamp login list`)",
    "limit": "as many runs as `[limits]` allows are at work; the error names them",
    "memory": "the machine has less memory available than `[limits] memory` asks for",
    "agent": "the agent that is to be told it (`agent`) does not run, is asked for a permission, or has another run",
}
"""Why a run that is `ready` has to wait."""
UNDER_WAY: Mapping[RunState, str] = {
    RunState.QUEUED: "it waits for a worker",
    RunState.ENRICHING: "what fired it is being read, and where it works is being chosen",
    RunState.READY: "it waits for a worker to start its agent",
    RunState.RUNNING: "its command, agent or wisp is at work",
}
ENDED: Mapping[RunState, str] = {
    RunState.SUCCEEDED: "it did what it was to do",
    RunState.FAILED: "it did not; `error` says more than the reason",
    RunState.NEEDS_HUMAN: "it ended and asks for a person",
    RunState.TIMED_OUT: "it took longer than it may in all",
    RunState.CANCELED: "it was called off",
    RunState.SKIPPED: "it was not needed, or could not begin; a slot that did not run has the same reasons",
}


def reference() -> str:
    """The page about states and reasons of runs."""
    lines = [
        "<!-- Made by docs/write_events.py; change src/lamplighter/domain/runs/reasons.py instead. -->",
        "# States and reasons of runs",
        "",
        "`lamp run show` tells the state of a run, and for one that has ended the reason. How a run goes from one",
        "state to the next is told in [Runs](../explanation/runs.md).",
        "",
        "| state | meaning |",
        "|---|---|",
        *(f"| `{state}` | {text} |" for state, text in {**UNDER_WAY, **ENDED}.items()),
    ]
    lines += ["", f"## `{RunState.READY}`", "", "A run that has to wait goes on by itself. It says what it waits for:"]
    lines += ["", "| reason | meaning |", "|---|---|", *(f"| `{reason}` | {text} |" for reason, text in WAITS.items())]
    for state, reasons in REASONS.items():
        lines += ["", f"## `{state}`", "", "| reason | meaning |", "|---|---|"]
        lines += [f"| {f'`{reason}`' if reason else 'none'} | {text} |" for reason, text in reasons.items()]
    return "\n".join([*lines, ""])

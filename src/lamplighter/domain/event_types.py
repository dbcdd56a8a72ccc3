"""Every type of event that Lamplighter emits, with what it means and the keys of its payload: the reference is made
from it, and a test compares it with what the program emits.
"""

from collections.abc import Mapping
from typing import NamedTuple


class EventType(NamedTuple):
    """`subject` is what the event is about; `payload` maps keys to what they hold. A bead's event holds the bead."""

    meaning: str
    subject: str
    payload: Mapping[str, str] = {}


_SESSION = {"session": "the session's name"}
_STOPPED = _SESSION | {"reason": "why", "exit_status": "of its program, where it ended by itself"}
_ENDED = {
    "automation": "its automation",
    "run": "the run's id",
    "attempt": "which try it is, from 0",
    "final": "false if it is tried again",
    "state": "its state",
    "reason": "the reason of that state, or null",
    "grade": "`verified`, `claimed` or null",
    "exit_code": "of a command, or null",
    "output_tail": "the end of its output, or null",
    "before": "for a run that a person resolved: `state` and `ended_at` of its first end",
}
_STORED = {
    "source": "`file`, or who stored it",
    "path": "its file, for one of a file",
    "enabled": "whether it is enabled, for a stored one",
    "reason": "why it is disabled",
}
_OF_FILE = {"source": "`file`, or who stored it"}
_MEMORY = {
    "node": "on which node",
    "available_mb": "megabytes that are available",
    "wanted_mb": "megabytes that `[limits] memory` asks for",
}
_LOGIN = {
    "preset": "the program",
    "home": "where it keeps its login",
    "node": "on which node",
    "run": "the run that met it",
    "sign_in": "the command that signs it in, if it is not signed in",
    "model": "the model that is limited, or null for all",
    "until": "when the limit ends",
}
_MAIL = {"from": "the sender", "to": "the receiver"}

_BULK = {"action": "what is done to each run", "total": "how many runs it is about"}
_COUNTED = {"done": "for how many it was done", "refused": "how many refused it"}
_ORGANIZATIONS = {"organization": "its id", "before": "the name of the one before"}
_ITEM = {"item": "the item's id", "kind": "its kind"}

EVENT_TYPES: Mapping[str, EventType] = {
    "agent.adopted": EventType(
        "a living session that another process started is in this one's care", "agent",
        _SESSION | {"session_id": "its id", "pid": "its process", "reason": "why"},
    ),
    "agent.crashed": EventType(
        "its program ended unasked, after it had written something", "agent",
        _SESSION | {"session_id": "its id", "exit_status": "of its program", "output": "the last it wrote"},
    ),
    "agent.draining": EventType("it was asked to finish", "agent", _SESSION),
    "agent.idle_killed": EventType("it was ended for its silence", "agent", _SESSION | {"reason": "why"}),
    "agent.killed": EventType("a person ended it at once", "agent", _SESSION | {"reason": "who"}),
    "agent.nudge_failed": EventType(
        "its first message could not be typed to it, or not yet: the message says which", "agent", _SESSION
    ),
    "agent.nudged": EventType("its first message was typed to it late, once it was ready", "agent", _SESSION),
    "agent.quarantined": EventType(
        "it was started too often, and is not started until its starts leave the window", "agent",
        _SESSION | {"starts": "how often", "until": "when it ends", "cause": "of the last end"},
    ),
    "agent.resumed": EventType("a person lifted its suspension", "agent", _SESSION),
    "agent.start_failed": EventType("it could not be started", "agent", _SESSION | {"hint": "what to do"}),
    "agent.started": EventType(
        "its session was started", "agent",
        _SESSION | {"session_id": "its id", "pid": "its process", "reason": "why: wanted, crashed, changed, …"},
    ),
    "agent.stopped": EventType("its session ended, or was ended, for the reason that is told", "agent", _STOPPED),
    "agent.suspended": EventType("it was stopped because it is suspended", "agent", _SESSION | {"reason": "why"}),
    "agent.undrained": EventType("it need not finish after all", "agent", _SESSION),
    "agent.unquarantined": EventType("a person lifted its quarantine", "agent"),
    "automation.added": EventType("there is a new automation", "automation", _STORED),
    "automation.broken": EventType(
        "its file has problems and is left out", "automation", {"path": "the file", "problems": "all of them"}
    ),
    "automation.canceled": EventType("a run was called off", "automation", _ENDED),
    "automation.changed": EventType("its definition changed", "automation", _STORED),
    "automation.completed": EventType(
        "a run succeeded; for a formula, its wisp was cooked", "automation", _ENDED | {"wisp": "the cooked wisp's id"}
    ),
    "automation.cursor_moved": EventType(
        "its cursor was moved", "automation",
        {"value": "where it is now", "type": "text, integer or time", "version": "counts its moves"},
    ),
    "automation.disabled": EventType(
        "it fires no more: a person disabled it, or it failed too often", "automation",
        _STORED | {"failures": "how many in a row", "run": "the last of them"},
    ),
    "automation.enabled": EventType("a person enabled it", "automation", _STORED),
    "automation.error": EventType("it could not be fired; the message says why", "automation"),
    "automation.failed": EventType("a run failed, or took longer than its deadline", "automation", _ENDED),
    "automation.finished": EventType("the wisp of a formula's run is closed: the run succeeded", "automation", _ENDED),
    "automation.fired": EventType(
        "a run began", "automation",
        {"automation": "its name", "run": "the run's id",
         "trigger": "`id`, `kind` and `event_id` of what fired it", "slot": "of a schedule",
         "due_at": "when it was due", "reason": "why, in words"},
    ),
    "automation.needs_human": EventType(
        "a run ended and asks for a person", "automation",
        _ENDED | {"question": "what it asks: `text`, and where there are any `choices`"},
    ),
    "automation.noted": EventType(
        "notes for its next runs were written", "automation", {"version": "which", "bytes": "how long they are"}
    ),
    "automation.quiet": EventType(
        "nothing has fired for as long as its `quiet_after`", "automation", {"since": "the last firing"}
    ),
    "automation.removed": EventType("it is gone", "automation", _STORED),
    "automation.resumed": EventType("its suspension was lifted", "automation", _STORED),
    "automation.skipped": EventType(
        "a slot did not run, or a run was skipped; the reasons are those of skipped runs", "automation",
        _ENDED | {"trigger": "the trigger, for a slot", "due_at": "when it was due", "count": "how many such slots",
                  "why": "more about the reason, of a slot"},
    ),
    "automation.suspended": EventType("it was suspended", "automation", _STORED),
    "automation.unreadable": EventType("its stored definition cannot be read; the message says why", "automation"),
    "bead.closed": EventType("it was closed", "bead", {"…": "the bead, as `lamp bead show --json` shows it"}),
    "bead.created": EventType("it was created", "bead", {"…": "the bead"}),
    "bead.imported": EventType("beads were taken over from another store", "", {"source": "which"}),
    "bead.updated": EventType("it was changed or claimed", "bead", {"…": "the bead"}),
    "bulk.aborted": EventType("it was stopped before its end", "bulk action", _BULK | _COUNTED),
    "bulk.created": EventType(
        "one thing is to be done to many runs", "bulk action",
        _BULK | {"query": "by what the runs were chosen, or null if they were named"},
    ),
    "bulk.ended": EventType("it is done with every run", "bulk action", _BULK | _COUNTED),
    "city.joined": EventType("it belongs to another organization", "organization", _ORGANIZATIONS),
    "city.left": EventType("it has an organization of its own again", "organization", _ORGANIZATIONS),
    "city.member_added": EventType("a person may use the cities of the organization", "member", {"role": "the role"}),
    "city.member_changed": EventType("a person has another role", "member", {"role": "the new one"}),
    "city.member_removed": EventType("a person may not use the city any more", "member"),
    "city.new_id": EventType("a copy became a city of its own", "city", {"id": "its id", "before": "the original's"}),
    "city.paused": EventType("nothing fires until it is resumed", "city"),
    "city.resumed": EventType("pause or suspension was lifted", "city"),
    "city.suspended": EventType("nothing starts and nothing fires until it is resumed", "city"),
    "config.rejected": EventType("changed files are not in force", "city", {"reason": "why"}),
    "config.reloaded": EventType(
        "changed files are in force", "city", {"revision": "the digest of the files", "changed": "which parts changed"}
    ),
    "configuration.added": EventType("there is a new configuration of agent runs", "configuration", _OF_FILE),
    "configuration.changed": EventType("it was changed", "configuration", _OF_FILE),
    "configuration.removed": EventType("it is gone", "configuration"),
    "connection.added": EventType("deliveries can come in", "connection", {"provider": "from where"}),
    "connection.removed": EventType("nothing comes in there any more", "connection"),
    "connection.rotated": EventType(
        "it has a new secret", "connection", {"previous_until": "how long the one before still holds"}
    ),
    "controller.clock_set_back": EventType(
        "the machine's clock was set back; waits went on where they were", "", {"by_seconds": "by how much"}
    ),
    "controller.memory_enough": EventType("the machine has memory again; runs start", "node", _MEMORY),
    "controller.memory_low": EventType("the machine is short of memory; runs wait with their start", "node", _MEMORY),
    "controller.started": EventType("the city runs", "city", {"pid": "its process", "version": "of the program"}),
    "controller.stopped": EventType("the city's process ends as it was asked to", "city", {"pid": "its process"}),
    "convoy.closed": EventType("its last child was closed, and so it is too", "bead"),
    "delivery.replayed": EventType(
        "a person had deliveries judged again", "connection, if one was named", {"count": "how many"}
    ),
    "delivery.retried": EventType(
        "a person had work of the outbox tried again", "kind of work", {"item": "the outbox item's id"}
    ),
    "inbox.claimed": EventType("a person looks after an item", "what it is about", _ITEM),
    "inbox.dismissed": EventType(
        "a person settled an item without doing anything", "what it is about", _ITEM | {"reason": "why, if it was said"}
    ),
    "inbox.reopened": EventType("a dismissed item is open again", "what it is about", _ITEM),
    "inbox.resolved": EventType("a person settled an item as dealt with", "what it is about", _ITEM),
    "inbox.snoozed": EventType("an item is hidden for a while", "what it is about", _ITEM | {"snoozed_until": "when"}),
    "inbox.unclaimed": EventType("a person let go of an item", "what it is about", _ITEM),
    "inbox.unsnoozed": EventType("a snoozed item is shown again", "what it is about", _ITEM),
    "login.limited": EventType("an agent program's account has reached a limit; its runs wait", "preset", _LOGIN),
    "login.refused": EventType("an agent program is not signed in; its runs wait", "preset", _LOGIN),
    "login.works": EventType("an agent program works again", "preset", _LOGIN),
    "mail.read": EventType("a message was read", "message", _MAIL),
    "mail.sent": EventType("a message was sent", "message", _MAIL),
    "node.alive": EventType(
        "a node has a living process again, or for the first time", "node", {"place": "where", "rigs": "its rigs"}
    ),
    "node.lost": EventType("the last process of a node died", "node"),
    "node.stopped": EventType("the last process of a node ended as it was asked to", "node"),
    "owner.lost": EventType(
        "a process of the city died; what it held is free", "process",
        {"kind": "controller or worker", "host": "its machine", "pid": "its process", "leases": "how many runs it held",
         "items": "how many outbox items"},
    ),
    "rig.added": EventType("a rig was added to city.toml", "rig"),
    "rig.resumed": EventType("its suspension was lifted", "rig"),
    "rig.suspended": EventType("it was suspended", "rig"),
    "run.adopted": EventType(
        "a conversation begun by hand goes on as a run", "automation",
        {"run": "the run's id", "preset": "the program", "session": "its id of the conversation", "by": "who"},
    ),
    "run.continued": EventType(
        "a person or program went on with an ended run, as a new one", "automation",
        {"run": "the run's id", "continued_by": "the new run's id", "by": "who"},
    ),
    "run.given": EventType(
        "a person gave a run back that they had taken", "automation", {"run": "the run's id", "by": "who"}
    ),
    "run.quiet": EventType(
        "nothing is heard of a run", "automation", {"since": "the last word"}
    ),
    "run.resolved": EventType(
        "a person settled a run that needed one", "automation",
        {"run": "the run's id", "state": "its new state", "previous_state": "the one before", "reason": "why, if told"},
    ),
    "run.stuck": EventType(
        "its agent repeats the same call with the same result: it is told so, and goes on", "automation",
        {"run": "the run", "round": "the round that ended so", "why": "the call that it repeats, and its result"},
    ),
    "run.taken": EventType(
        "a person took a run over from its agent", "automation", {"run": "the run's id", "by": "who"}
    ),
    "run.verify_failed": EventType(
        "what a run claimed was not verified; it may try again", "automation",
        {"run": "the run's id", "round": "which try", "rounds": "of how many", "exit_code": "of the verification"},
    ),
    "slack.installed": EventType("an app works in a workspace of Slack", "workspace", {"name": "its name"}),
    "slack.linked": EventType(
        "a user of Slack is a member", "member", {"team": "the workspace", "person": "the user there"}
    ),
    "slack.removed": EventType("a workspace of Slack is forgotten", "workspace"),
}  # fmt: skip


def reference() -> str:
    """The page about event types."""
    lines = [
        "<!-- Made by docs/write_events.py; change src/lamplighter/domain/event_types.py instead. -->",
        "# Event types",
        "",
        "What happens in a city is an event on its bus: `lamp event list` and `lamp event tail` show them, and",
        "triggers of the kind `event` wait for them. Each has `seq` (a number that only grows), `type`, `at`, `actor`",
        "(who did it), `subject` (what it is about), `message` (words for people), `payload` and `run` (its cause).",
        "",
        "Types that begin with one of these words come from Lamplighter alone. Programs and people emit types of their",
        "own with `lamp event emit`. A key that does not apply may be missing from a payload.",
        "",
        "| type | subject | meaning | payload |",
        "|---|---|---|---|",
    ]
    for name, one in EVENT_TYPES.items():
        keys = "; ".join(f"`{key}`: {text}" if key != "…" else text for key, text in one.payload.items())
        lines.append(f"| `{name}` | {one.subject} | {one.meaning} | {keys} |")
    return "\n".join([*lines, ""])

"""The common verbs of `gc`, each as a call of `lamp`."""

import argparse
from typing import Any

from lamplighter.cli.front_calls import MOST, Parser, Run, Words, answer, flag_of, say

SAME_IN_GC = ("status", "start", "stop", "restart", "suspend", "resume", "rig", "automation", "formula", "doctor",
              "daemon", "config", "version")  # fmt: skip
"""Commands of `gc` that `lamp` has under the same name."""
_AGENT_VERBS = ("list", "attach", "kill", "suspend", "resume", "drain", "undrain", "drain-check", "drain-ack",
                "request-restart")  # fmt: skip


def gc_parser() -> Parser:
    parser = Parser(prog="gc")
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=Parser)
    for name in SAME_IN_GC:
        _passed(verbs, name, [name])
    _passed(verbs, "hook", ["hook"])
    _passed(verbs, "prime", ["prime"])
    for group in ("agent", "runtime", "session"):
        _agent_verbs(verbs.add_parser(group))
    _nudge(verbs)
    _peek(verbs)
    _mail(verbs.add_parser("mail"))
    event = verbs.add_parser("event").add_subparsers(dest="sub", required=True, parser_class=Parser)
    _passed(event, "emit", ["event", "emit"], always_succeeds=True)
    _events(verbs.add_parser("events"))
    return parser


def _passed(verbs: Any, name: str, call: Words, *, always_succeeds: bool = False) -> None:
    """A verb that `lamp` has with the same arguments."""
    parser = verbs.add_parser(name, prefix_chars="\0")
    parser.add_argument("rest", nargs="*")
    parser.set_defaults(do=lambda asked, run: run([*call, *asked.rest]) * (not always_succeeds))


def _agent_verbs(parser: Parser) -> None:
    """`gc agent`, and `gc runtime` and `gc session` of later versions, which act on agents too."""
    verbs = parser.add_subparsers(dest="sub", required=True, parser_class=Parser)
    for name in _AGENT_VERBS:
        _passed(verbs, name, ["agent", name])
    _passed(verbs, "status", ["agent", "show"])
    _nudge(verbs)
    _peek(verbs)


def _nudge(verbs: Any) -> None:
    parser = verbs.add_parser("nudge")
    parser.add_argument("name")
    parser.add_argument("message", nargs="+")
    parser.set_defaults(do=lambda asked, run: run(["agent", "nudge", _agent(asked.name), "--", *asked.message]))


def _peek(verbs: Any) -> None:
    parser = verbs.add_parser("peek")
    parser.add_argument("name")
    parser.add_argument("count", nargs="?")
    parser.add_argument("--lines", "-n", default="50")
    parser.set_defaults(
        do=lambda asked, run: run(["agent", "peek", _agent(asked.name), f"--lines={asked.count or asked.lines}"])
    )


def _mail(parser: Parser) -> None:
    verbs = parser.add_subparsers(dest="sub", required=True, parser_class=Parser)
    for name in ("inbox", "check", "read", "archive"):
        _passed(verbs, name, ["mail", name])
    send = verbs.add_parser("send")
    send.add_argument("words", nargs="*")
    send.add_argument("--all", action="store_true")
    send.add_argument("--notify", action="store_true")
    send.add_argument("--from", dest="sender")
    send.add_argument("--subject", "-s")
    send.add_argument("--message", "-m")
    send.set_defaults(do=_send)


def _send(asked: argparse.Namespace, run: Run) -> int:
    to: Words = [] if asked.all else asked.words[:1]
    told = [asked.subject, asked.message, " ".join(asked.words[len(to) :])]
    if not to and not asked.all:  # a note to oneself, for the next session
        from lamplighter.app.settings import from_environment

        to = [from_environment(None).actor]
    flags = [*flag_of("from", asked.sender), *(["--all"] if asked.all else []), *(["--notify"] if asked.notify else [])]
    return run(["mail", "send", *flags, "--", *map(_agent, to), "\n\n".join(filter(None, told))])


def _events(parser: Parser) -> None:
    for name in ("type", "since", "after"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--seq", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(do=_show_events)


def _show_events(asked: argparse.Namespace, run: Run) -> int:
    if asked.seq:
        code, found = answer(run, ["event", "list", "--limit=1"])
        say([str(event["seq"]) for event in found] or ["0"], code)
        return code
    flags = [*flag_of("type", asked.type), *flag_of("since", asked.since), *flag_of("after", asked.after)]
    if asked.follow:
        return run(["event", "tail", *flags, "--json"])
    return run(["event", "list", *flags, f"--limit={MOST}", *(["--json"] if asked.json else [])])


def _agent(name: str) -> str:
    """`mayor/` is a form of `mayor` in addresses."""
    return name.rstrip("/") or name

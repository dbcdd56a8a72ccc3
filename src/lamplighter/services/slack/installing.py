"""Slack's workspaces: an app's manifest, installed with its tokens, listed, tried, removed; and who is who there."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from lamplighter.domain.access import Role, Verb, require
from lamplighter.domain.automations.model import Strategy
from lamplighter.domain.city.model import Configuration
from lamplighter.domain.city.providers import known_providers
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.domain.slack.manifest import lacking, manifest
from lamplighter.kit.errors import Conflict, LampError, NotFound, UsageError
from lamplighter.kit.nearest import did_you_mean, full_stop
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import given
from lamplighter.ports.slack import Method
from lamplighter.services import configurations
from lamplighter.services.context import Context
from lamplighter.services.host import Host
from lamplighter.services.members import OWNER, locked
from lamplighter.services.operation import Http, Need, effect, read, transaction
from lamplighter.services.secrets import seal
from lamplighter.store.secrets import SecretRow
from lamplighter.store.slack import Contact, Installation, Person
from lamplighter.store.tx import Tx

BOT, SIGNING, APP = "bot", "signing", "app"
CODE_HOLDS = timedelta(minutes=15)
LOOKED_WITHIN = timedelta(minutes=2)
"""Whoever keeps sockets open says so every half a minute."""
_SHAPES = {
    BOT: re.compile(r"xoxb-[A-Za-z0-9-]{6,300}"),
    APP: re.compile(r"xapp-[A-Za-z0-9-]{6,300}"),
    SIGNING: re.compile(r"[0-9a-f]{32}"),
}
_TOLD = {
    BOT: "The bot's token begins with `xoxb-`.",
    APP: "The token for Socket Mode begins with `xapp-`.",
    SIGNING: "The signing secret has 32 hexadecimal digits; it is on the app's page “Basic Information”.",
}


def secret_name(team: str, which: str) -> str:
    """The name of a workspace's secret; no person can give such a name, because of the slashes."""
    return f"slack/{team}/{which}"


class SlackUnknown(NotFound):
    def __init__(self, team: str, known: Sequence[str]) -> None:
        super().__init__(
            f"Slack's workspace `{team}` is not installed{full_stop(team, known)}",
            hint="`lamp slack list` shows those that are.",
        )


class CodeUnknown(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "That code links nobody: it was used, it is too old, or it was never given.",
            hint="Press the button in Slack once more to be given another.",
        )


@dataclass(frozen=True)
class Manifest:
    manifest: Mapping[str, Any]
    socket_mode: bool


@dataclass(frozen=True, kw_only=True)
class InstallationView:
    """A workspace with the app; its tokens are shown nowhere."""

    team: str
    name: str
    bot_user: str
    ways: Sequence[str] = given("How Slack reaches the city: `events`, `socket`; neither without their secrets.")
    preset: str | None = given("The agent program that works in its threads; none where nobody may begin one.")
    rig: str | None = given("Where it works; in the city's directory without one.")
    mode: str = given("What it may do there.")
    configurations: Sequence[str] = given("Where it works: the only one, or one that is chosen.")
    strategy: str | None = given("`fixed`, or `agent_decide` where one of several is chosen; none without any.")
    people: Mapping[str, str] = given("Users of Slack, and the members they are.")
    connected: bool | None = given(
        "Whether sockets are open now, or Slack has called the public address; none where neither is set up."
    )
    heard_at: datetime | None = given("When Slack last told something.")
    error: str | None = given("What last failed in reaching Slack.")
    failed_at: datetime | None = given("When that was.")
    lacks: Sequence[str] | None = given(
        "Scopes of `lamp slack manifest` that the app does not have, as Slack said last; none before it was asked."
    )
    unstreamed: str | None = given(
        "Why Slack last refused to have an answer streamed; none since it took one, or before there was one."
    )
    unstreamed_at: datetime | None = given("When that was.")
    conversations: Mapping[str, int] = given("Channels, and how many of their threads are conversations.")
    installed_at: datetime
    installed_by: str


@dataclass(frozen=True)
class SlackTested:
    team: str
    name: str
    bot_user: str
    works: bool = True
    lacks: Sequence[str] = given("Scopes of `lamp slack manifest` that the app does not have.", default=())


@dataclass(frozen=True)
class SlackRemoved:
    team: str
    removed: bool = True


@dataclass(frozen=True)
class SlackLinked:
    """A user of Slack and the member they are."""

    team: str
    person: str
    member: str


@dataclass(frozen=True)
class SlackAsked:
    """Whom a code was shown to in Slack: a person in a workspace, and what they are called there."""

    team: str
    workspace: str
    person: str
    name: str | None


@dataclass(frozen=True)
class ShowManifest:
    """The manifest from which to make an app of your own in Slack: for `[api] public_url`, else for Socket Mode."""

    name: str = given("What the app is called in Slack.", default="Lamplighter")
    socket: bool = given("For Socket Mode, although there is a public address.", default=False)
    plain: bool = given("Not declared as an agent: without Slack's own Stop button, and open to guests.", default=False)


@dataclass(frozen=True)
class InstallSlack:
    """Keep the tokens of an app in a workspace, encrypted, once Slack has said that the bot's works."""

    bot_token: str = given("The bot's token, `xoxb-…`.")
    signing_secret: str = given("What its requests are signed with, for events and buttons over HTTP.", default="")
    app_token: str = given("The token for Socket Mode, `xapp-…`.", default="")
    preset: str = given("The agent program that works in its threads; without it nobody can begin one.", default="")
    rig: str = given("Where it works; in the city's directory when left out.", default="")
    mode: str = given("What it may do: `approval`, `plan` or `full_access`.", default="approval")
    configurations: Sequence[str] = given(
        "Configurations in which it works, in place of a rig: the only one, or the one that a model chooses by their"
        " descriptions; whoever began chooses where it cannot.", default=(), key="configurations", metavar="NAME",
    )  # fmt: skip


@dataclass(frozen=True)
class ListSlack:
    """The workspaces of Slack with an app for this city."""


@dataclass(frozen=True)
class TrySlack:
    """Ask Slack whether the tokens of a workspace work."""

    team: str = given("The workspace's id, such as T0123456789.", positional=True)


@dataclass(frozen=True)
class RemoveSlack:
    """Forget a workspace, with its tokens and who is who there."""

    team: str = given("The workspace's id, such as T0123456789.", positional=True)


@dataclass(frozen=True)
class FindSlackCode:
    """Say to whom a code was shown in Slack, before it is used."""

    code: str = given("The code.", positional=True)


@dataclass(frozen=True)
class LinkSlack:
    """Say who you are in Slack, with the code that you were shown there."""

    code: str = given("The code.", positional=True)
    member: str = given("The member that it is, where that is not you.", default="")


def show_manifest(_tx: Tx, ask: ShowManifest, ctx: Context) -> Manifest:
    """Raises UsageError."""
    if not ask.name.strip() or len(ask.name) > 35:
        raise UsageError("An app's name has 1 to 35 characters.")
    public = "" if ask.socket else ctx.city.api.public_url
    return Manifest(manifest(ask.name.strip(), public, plain=ask.plain), not public)


async def install(host: Host, ask: InstallSlack, ctx: Context) -> InstallationView:
    """Raises UsageError, SlackRefused, Unavailable, KeyUnusable."""
    values = {BOT: ask.bot_token.strip(), SIGNING: ask.signing_secret.strip(), APP: ask.app_token.strip()}
    for which, value in values.items():
        if (value or which == BOT) and not _SHAPES[which].fullmatch(value):
            raise UsageError("That cannot be a secret of Slack's app.", hint=_TOLD[which])
    if values[APP] and not host.slack.can_listen():
        raise UsageError("Socket Mode needs the extra `slack`.", hint="Install `lamplighter[slack]`.")
    _check(ask, ctx)
    _check_places(ask, await host.store.read(configurations.known))
    said = await host.slack.call(Method.AUTH_TEST, values[BOT], {})
    if values[APP]:
        await host.slack.call(Method.OPEN_SOCKET, values[APP], {})
    team, who = str(said["team_id"]), ctx.actor.name
    row = Installation(
        team, str(said.get("team", "")), str(said["user_id"]), str(said.get("bot_id", "")), ask.preset, ask.rig,
        ask.mode, int(bool(values[SIGNING])), int(bool(values[APP])), ctx.now, who,
        json.dumps(list(dict.fromkeys(ask.configurations))), scopes_of(said),
    )  # fmt: skip
    secrets: dict[str, SecretRow | None] = {}
    for which, value in values.items():
        name = secret_name(team, which)
        secrets[name] = None
        if value:
            sealed = await seal(host, name, value)
            secrets[name] = SecretRow(name, sealed.key_id, sealed.nonce, sealed.text, ctx.now, who, ctx.now, who)
    return await host.store.transact(_put, row, secrets, ctx)


def _check(ask: InstallSlack, ctx: Context) -> None:
    if ask.mode not in {"approval", "plan", "full_access"}:
        raise UsageError(f"`{ask.mode[:40]}` is not a mode.", hint="Those are `approval`, `plan` and `full_access`.")
    rigs = [one.name for one in ctx.city.rigs]
    if ask.rig and ask.rig not in rigs:
        raise UsageError(f"There is no rig `{ask.rig[:80]}`{did_you_mean(ask.rig, rigs)}.", hint="`lamp rig list`")
    known = [name for name in known_providers(ctx.city) if name in PRESETS]
    if ask.preset and ask.preset not in known:
        told = f"There is no preset `{ask.preset[:80]}`{did_you_mean(ask.preset, known)}."
        raise UsageError(told, hint=f"Those there are: {', '.join(sorted(known))}.")


def _check_places(ask: InstallSlack, known: Mapping[str, Configuration]) -> None:
    names = list(dict.fromkeys(ask.configurations))
    for name in names:
        if name not in known:
            told = f"There is no configuration `{name[:80]}`{did_you_mean(name, sorted(known))}."
            raise UsageError(told, hint="`lamp configuration list`")
        if len(names) > 1 and not known[name].description.strip():
            hint = "Give it one: what it is for, in a sentence."
            raise UsageError(f"Configuration `{name}` has no description, so that no model can choose it.", hint=hint)
    if names and ask.rig:
        raise UsageError("A configuration says where it works: give no rig besides.")


def _put(tx: Tx, row: Installation, secrets: Mapping[str, SecretRow | None], ctx: Context) -> InstallationView:
    tx.slack.put(row)
    for name, secret in secrets.items():
        if secret is None:
            tx.secrets.delete(name)
        else:
            tx.secrets.put(secret)
    tx.events.append(ctx.event("slack.installed", subject=row.team, payload={"name": row.name}))
    tx.wake(TOPIC)
    return _view(tx, row, ctx.now)


TOPIC = "slack"
"""Woken when a workspace is installed or removed."""


def list_slack(tx: Tx, _ask: ListSlack, ctx: Context) -> list[InstallationView]:
    return [_view(tx, row, ctx.now) for row in tx.slack.all()]


async def try_slack(host: Host, ask: TrySlack, ctx: Context) -> SlackTested:
    """Raises SlackUnknown, SecretLocked, SlackRefused, Unavailable."""
    row, tokens = await opened(host, ask.team)
    try:
        said = await host.slack.call(Method.AUTH_TEST, tokens[BOT], {})
        if APP in tokens:
            await host.slack.call(Method.OPEN_SOCKET, tokens[APP], {})
    except LampError as error:
        told = error.message
        await host.store.transact(lambda tx: tx.slack.failed(row.team, told, ctx.now))
        raise
    scopes = scopes_of(said)
    await host.store.transact(lambda tx: tx.slack.scoped(row.team, scopes))
    name, bot_user = str(said.get("team", row.name)), str(said.get("user_id", row.bot_user))
    return SlackTested(row.team, name, bot_user, lacks=_lacks(scopes) or ())


def scopes_of(said: Mapping[str, Any]) -> str:
    """The scopes in an answer to `auth.test`, written alike."""
    return ",".join(sorted(filter(None, (one.strip() for one in str(said.get("scopes", "")).split(",")))))


def _lacks(scopes: str) -> list[str] | None:
    return lacking(scopes) if scopes else None


async def opened(host: Host, team: str) -> tuple[Installation, dict[str, str]]:
    """The workspace, and its secrets as far as there are any. Raises SlackUnknown, SecretLocked."""
    row, sealed = await host.store.read(sealed_of, team)
    values = [await asyncio.to_thread(host.secret_box.open, one.name, one.sealed) for one in sealed]
    return row, {one.name.rpartition("/")[2]: value for one, value in zip(sealed, values, strict=True)}


def sealed_of(tx: Tx, team: str) -> tuple[Installation, list[SecretRow]]:
    """Raises SlackUnknown."""
    row = tx.slack.get(team)
    if row is None:
        raise SlackUnknown(team, [one.team for one in tx.slack.all()])
    found = [tx.secrets.get(secret_name(team, which)) for which in (BOT, SIGNING, APP)]
    return row, [one for one in found if one is not None]


def remove(tx: Tx, ask: RemoveSlack, ctx: Context) -> SlackRemoved:
    """Raises SlackUnknown."""
    if not tx.slack.remove(ask.team):
        raise SlackUnknown(ask.team, [one.team for one in tx.slack.all()])
    for which in (BOT, SIGNING, APP):
        tx.secrets.delete(secret_name(ask.team, which))
    tx.events.append(ctx.event("slack.removed", subject=ask.team))
    tx.wake(TOPIC)
    return SlackRemoved(ask.team)


# ── who is who ────────────────────────────────────────────────────────────────────────────────────────────────────


def link(tx: Tx, ask: LinkSlack, ctx: Context) -> SlackLinked:
    """Raises CodeUnknown, MemberUnknown, Forbidden for the name of another."""
    found = _waiting(tx, ask.code, ctx)
    name = ask.member or _own_name(tx, ctx)
    if name != ctx.actor.name and ask.member:
        require(ctx.actor, Verb.WRITE_MEMBERS)
    if name != OWNER:
        locked(tx, name)
    tx.slack.put_person(changed(found, member=name, how="link", code=None, changed_at=ctx.now))
    payload = {"team": found.team, "person": found.person}
    tx.events.append(ctx.event("slack.linked", subject=name, payload=payload))
    return SlackLinked(found.team, found.person, name)


def find_code(tx: Tx, ask: FindSlackCode, ctx: Context) -> SlackAsked:
    """Raises CodeUnknown."""
    found = _waiting(tx, ask.code, ctx)
    row = tx.slack.get(found.team)
    return SlackAsked(found.team, "" if row is None else row.name, found.person, found.name or None)


def _waiting(tx: Tx, code: str, ctx: Context) -> Person:
    """Whoever waits to be linked by that code. Raises CodeUnknown."""
    mark = mark_of(code)
    found = next((one for one in tx.slack.people() if one.code == mark), None)
    if found is None or ctx.now - found.changed_at > CODE_HOLDS:
        raise CodeUnknown
    return found


def _own_name(tx: Tx, ctx: Context) -> str:
    """The actor's, if they are a member; the city's owner acts under the name of the owner."""
    known = {one.name for one in tx.members.all()}
    return OWNER if ctx.actor.role is Role.OWNER and ctx.actor.name not in known else ctx.actor.name


def mark_of(code: str) -> str:
    """What is kept of a code."""
    return sha256(code.strip().upper().encode()).hexdigest()


def member_of(tx: Tx, team: str, person: str) -> tuple[str, Role] | None:
    """The name and the role of a user of Slack; None for one who is not linked, or a member no more."""
    found = tx.slack.person(team, person)
    if found is None or found.member is None:
        return None
    if found.member == OWNER:
        return OWNER, Role.OWNER
    row = tx.members.lock(found.member)
    return None if row is None else (row.name, row.role)


def link_by_email(tx: Tx, team: str, person: str, email: str, ctx: Context, *, called: str = "") -> bool:
    """Whether a member has that address, which Slack has verified, for a name."""
    name = next((one.name for one in tx.members.all() if one.name.casefold() == email.casefold()), None)
    if name is None:
        return False
    tx.slack.put_person(Person(team, person, name, "email", None, ctx.now, called))
    payload = {"team": team, "person": person}
    tx.events.append(ctx.event("slack.linked", subject=name, payload=payload))
    return True


def _view(tx: Tx, row: Installation, now: datetime) -> InstallationView:
    contact = tx.slack.contact(row.team)
    return InstallationView(
        team=row.team, name=row.name, bot_user=row.bot_user,
        ways=[way for way, on in (("events", row.hears), ("socket", row.has_socket)) if on],
        preset=row.preset or None, rig=row.rig or None, mode=row.mode,
        configurations=(places := json.loads(row.configurations)), strategy=_strategy(places),
        people={one.person: one.member for one in tx.slack.people() if one.team == row.team and one.member is not None},
        connected=_connected(row, contact, now), heard_at=contact.heard_at, error=contact.error or None,
        failed_at=contact.failed_at,
        conversations={channel: number for (team, channel), number in tx.slack.talks().items() if team == row.team},
        lacks=_lacks(row.scopes), unstreamed=contact.unstreamed or None, unstreamed_at=contact.unstreamed_at,
        installed_at=row.installed_at, installed_by=row.installed_by,
    )  # fmt: skip


def _strategy(places: Sequence[str]) -> str | None:
    if not places:
        return None
    return (Strategy.AGENT_DECIDE if len(places) > 1 else Strategy.FIXED).value


def _connected(row: Installation, contact: Contact, now: datetime) -> bool | None:
    if row.has_socket:
        return contact.sockets > 0 and contact.looked_at is not None and now - contact.looked_at < LOOKED_WITHIN
    return contact.heard_at is not None if row.hears else None


MANIFEST = read("slack.manifest", Verb.READ, ShowManifest, Manifest, show_manifest, needs=Need.CONFIG,
                http=Http("GET", "/slack/manifest"))  # fmt: skip
INSTALL = effect("slack.install", Verb.WRITE_CONNECTIONS, InstallSlack, InstallationView, install, needs=Need.CONFIG,
                 within=30.0, http=Http("POST", "/slack", status=201))  # fmt: skip
LIST = read("slack.list", Verb.READ, ListSlack, list[InstallationView], list_slack, http=Http("GET", "/slack"))
TEST = effect("slack.test", Verb.WRITE_CONNECTIONS, TrySlack, SlackTested, try_slack, within=30.0,
              http=Http("POST", "/slack/{team}/test"))  # fmt: skip
REMOVE = transaction("slack.remove", Verb.WRITE_CONNECTIONS, RemoveSlack, SlackRemoved, remove,
                     http=Http("DELETE", "/slack/{team}", status=204))  # fmt: skip
WHO = read("slack.who", Verb.LINK_SLACK, FindSlackCode, SlackAsked, find_code,
           http=Http("GET", "/slack/who/{code}"))  # fmt: skip
# Who links can then do in Slack what their role may, as with a token of their own.
LINK = transaction("slack.link", Verb.LINK_SLACK, LinkSlack, SlackLinked, link, http=Http("POST", "/slack/link"))

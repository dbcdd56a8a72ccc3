"""Logins of agent programs: which one a run uses, and what becomes of the runs of one that does not work.

A login is a program on a node with the directory that keeps its login, and the keys in its environment. When it is
refused, or its provider's limit is reached, further runs wait: one of them tries again when there is a reason to.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from lamplighter.domain.sessions.presets.model import Preset
from lamplighter.kit.records import record

CHECK_EVERY = timedelta(seconds=30)
"""How often the runs that wait for a refused login look whether there is a reason to try it."""
TRY_EVERY = timedelta(hours=1)
"""How often one of them tries it without any sign of a change."""
LONGEST_TRY = timedelta(hours=3)
"""A run that tries a login and has not ended by then is not waited for."""


class LoginState(StrEnum):
    WORKS = "works"
    REFUSED = "login"
    LIMITED = "provider_limit"


@record
class LoginKey:
    """`home` is the directory that keeps the login, `account` a mark of the keys in the environment."""

    node: str
    preset: str
    home: str
    account: str = ""


@record
class Login:
    """What is known of a login. `model` is set for a limit that was told of that model.

    `marks` are those of its files when it was refused, `looked_at` is when it was last tried, `trying` the run that
    tries it now, since `trying_since`. `configuration` is the one of the run that was last told of it.
    """

    key: LoginKey
    state: LoginState
    since: datetime
    model: str = ""
    until: datetime | None = None
    detail: str = ""
    marks: str = ""
    looked_at: datetime | None = None
    trying: str | None = None
    trying_since: datetime | None = None
    configuration: str | None = None


@record
class Waiting:
    """A run that is to start: until when it may wait, and whether a person asked for it."""

    run: str
    give_up_at: datetime
    by_hand: bool = False


@record
class Go:
    """Start it. `tries` is the login that it tries for all others that wait."""

    tries: Login | None = None


@record
class Wait:
    until: datetime
    why: Login


@record
class GiveUp:
    """It has waited as long as it may: the run is skipped."""

    why: Login


Decision = Go | Wait | GiveUp


def home_of(preset: Preset, env: Mapping[str, str]) -> str:
    """The directory that keeps the program's login in that environment."""
    login = preset.login
    home = env.get("HOME", "")
    if login is None:
        return home
    named = env.get(login.variable, "") if login.variable != "HOME" else ""
    return (named or (f"{home}/{login.root}" if login.root else home)).rstrip("/") or "/"


def account_of(preset: Preset, env: Mapping[str, str]) -> str:
    """A short mark of the keys in the environment: with other keys it is another login. Empty without any."""
    given = [f"{name}={env[name]}" for name in sorted(preset.keys) if env.get(name)]
    return sha256("\n".join(given).encode()).hexdigest()[:12] if given else ""


def key_of(preset: Preset, env: Mapping[str, str], node: str) -> LoginKey:
    return LoginKey(node, preset.name, home_of(preset, env), account_of(preset, env))


def in_the_way(known: tuple[Login, ...], key: LoginKey, model: str) -> Login | None:
    """What is known to keep runs of this login and model from their work; a refusal comes before a limit."""
    about = [one for one in known if one.key == key and one.state is not LoginState.WORKS]
    refused = [one for one in about if one.state is LoginState.REFUSED]
    limited = [one for one in about if one.state is LoginState.LIMITED and one.model == model]
    return next(iter((*refused, *limited)), None)


def decide(held: Login | None, marks: str, waiting: Waiting, now: datetime) -> Decision:
    """What becomes of a run whose login is `held`. `marks` are those of the login's files now."""
    if held is None or waiting.by_hand:
        return Go(held if held is not None and held.state is LoginState.REFUSED else None)
    if held.state is LoginState.LIMITED:
        if held.until is None or held.until <= now:
            return Go()
        return GiveUp(held) if held.until > waiting.give_up_at else Wait(held.until, held)
    if _may_try(held, marks, waiting, now):
        return Go(held)
    if now >= waiting.give_up_at:
        return GiveUp(held)
    return Wait(min(now + CHECK_EVERY, waiting.give_up_at), held)


def _may_try(held: Login, marks: str, waiting: Waiting, now: datetime) -> bool:
    if held.trying is not None and held.trying != waiting.run and now - (held.trying_since or now) < LONGEST_TRY:
        return False
    return held.looked_at is None or held.marks != marks or now - held.looked_at >= TRY_EVERY

"""Logins of agent programs: what runs found out about them, and what people can ask of them."""

from dataclasses import replace
from datetime import datetime, timedelta

from lamplighter.domain.access import Verb
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.sessions.logins import Login, LoginKey, LoginState
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import NotFound
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, effect, read
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host

NOTED_EVERY = timedelta(hours=1)
FORGOTTEN_AFTER = timedelta(days=30)
_REACHED = frozenset({RunState.SUCCEEDED, RunState.NEEDS_HUMAN})


def after_run(tx: Tx, run: Run, found: Login | None, *, ctx: Context) -> None:
    """Record what the end of an agent run says about its login, in the transaction that ends the run."""
    key = key_of(run)
    if found is not None:
        _not_working(tx, run, found, ctx)
    elif key is not None and (run.state in _REACHED or (run.reason == "no_completion" and run.tokens)):
        _works(tx, key, run, ctx)
    elif run.in_force is not None and "tries_login" in run.in_force:
        tx.logins.leave(run.id)


def key_of(run: Run) -> LoginKey | None:
    """The login that a run was started with."""
    told = run.in_force
    if told is None or run.node is None or "login_home" not in told:
        return None
    return LoginKey(run.node, told["preset"], told["login_home"], told.get("login_account", ""))


def sign_in(preset: str) -> str:
    """What a person does to sign in to that program, as a sentence."""
    known = PRESETS.get(preset)
    return "" if known is None or known.login is None else known.login.sign_in


def _not_working(tx: Tx, run: Run, found: Login, ctx: Context) -> None:
    """One event for each time that it stops to work, whatever the number of runs that find it so."""
    if found.state is LoginState.LIMITED and found.until is None:
        return  # nobody knows when to go on, so nothing is held
    before = next((one for one in tx.logins.all() if (one.key, one.model) == (found.key, found.model)), None)
    again = before is not None and before.state is found.state
    since = before.since if before is not None and again else ctx.now
    tx.logins.put(replace(found, since=since, looked_at=ctx.now, configuration=run.configuration))
    if not again:
        what = "login.refused" if found.state is LoginState.REFUSED else "login.limited"
        tx.events.append(ctx.event(what, subject=found.key.preset, message=found.detail, payload=_told(found, run.id)))


def _told(one: Login, run: str | None = None) -> dict[str, object]:
    told: dict[str, object] = {"preset": one.key.preset, "home": one.key.home, "node": one.key.node, "run": run}
    if one.state is LoginState.REFUSED:
        told["sign_in"] = sign_in(one.key.preset)
    if one.until is not None:
        told |= {"model": one.model or None, "until": rfc3339(one.until)}
    return told


def _works(tx: Tx, key: LoginKey, run: Run, ctx: Context) -> None:
    """A refusal of the same home with other keys is over, too: those keys were replaced."""
    known = tx.logins.all()
    model = (run.in_force or {}).get("model", "")
    here = [one for one in known if (one.key.node, one.key.preset, one.key.home) == (key.node, key.preset, key.home)]
    over = [one for one in here if one.state is LoginState.REFUSED]
    over += [one for one in here if one.state is LoginState.LIMITED and one.key == key and one.model == model]
    for one in over:
        tx.logins.remove(one)
        tx.events.append(ctx.event("login.works", subject=key.preset, payload=_told(replace(one, until=None), run.id)))
    noted = next((one for one in here if one.key == key and one.state is LoginState.WORKS), None)
    if noted is None or noted.looked_at is None or ctx.now - noted.looked_at >= NOTED_EVERY:
        since = ctx.now if noted is None or over else noted.since
        tx.logins.put(Login(key, LoginState.WORKS, since, looked_at=ctx.now, configuration=run.configuration))


def prune(tx: Tx, *, now: datetime) -> int:
    return tx.logins.prune(before=now - FORGOTTEN_AFTER)


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


@record
class LoginView:
    """`state` is `works`, `login` (refused) or `provider_limit` (until `until`, for `model` where one is named)."""

    preset: str
    home: str
    node: str
    state: str
    since: datetime
    model: str | None
    until: datetime | None
    detail: str | None
    sign_in: str | None
    configuration: str | None
    trying: str | None


@record
class LoginCheck:
    """`signed_in` is null where the program cannot be asked without a run."""

    preset: str
    home: str
    node: str
    state: str
    signed_in: bool | None
    detail: str
    sign_in: str | None


@record
class ListLogins:
    """The logins that agent runs used, and whether they work."""


@record
class CheckLogins:
    """Ask the programs whether they are signed in; a refused login is tried again by the next run that waits for it.

    Exits 1 when one of them is not.
    """

    preset: str | None = given("Only this program's.", positional=True, default=None)


def view(one: Login) -> LoginView:
    return LoginView(
        preset=one.key.preset,
        home=one.key.home,
        node=one.key.node,
        state=one.state.value,
        since=one.since,
        model=one.model or None,
        until=one.until,
        detail=one.detail or None,
        sign_in=sign_in(one.key.preset) or None if one.state is LoginState.REFUSED else None,
        configuration=one.configuration,
        trying=one.trying,
    )


def held(tx: Tx) -> list[LoginView]:
    """Those that keep runs waiting, the longest first."""
    return [view(one) for one in tx.logins.not_working()]


def list_logins(tx: Tx, _ask: ListLogins, _ctx: Context) -> list[LoginView]:
    return [view(one) for one in tx.logins.all()]


async def check_logins(host: "Host", ask: CheckLogins, ctx: Context) -> list[LoginCheck]:
    """Raises NotFound for a program of which no login is on record."""
    known = [one for one in await host.store.read(lambda tx: tx.logins.all()) if not one.model]
    named = [one for one in known if ask.preset in {None, one.key.preset}]
    if ask.preset is not None and not named:
        used = sorted({one.key.preset for one in known})
        raise NotFound(
            f"No run has used a login of `{ask.preset}`{full_stop(ask.preset, used)}",
            hint="`lamp login list` shows the logins that runs have used.",
        )
    return [await _checked(host, one, ctx) for one in named]


async def _checked(host: "Host", one: Login, _ctx: Context) -> LoginCheck:
    answer = await host.ask_login(one)
    if one.state is LoginState.REFUSED and answer is not False:
        await host.store.transact(lambda tx: tx.logins.look_again(one.key))
    if answer is False:
        detail = "It is not signed in."
    elif one.state is LoginState.REFUSED:
        detail = "It was refused; the next run that waits for it tries it."
    elif answer is True:
        detail = "It is signed in."
    else:
        detail = f"It worked at {rfc3339(one.looked_at)}." if one.looked_at else "It worked."
    key = one.key
    advice = sign_in(key.preset) if answer is False or one.state is LoginState.REFUSED else None
    return LoginCheck(key.preset, key.home, key.node, one.state.value, answer, detail, advice or None)


def notice(one: LoginView) -> str:
    """What is wrong with a login that keeps runs waiting, in a sentence."""
    preset = PRESETS.get(one.preset)
    where = f"{one.preset if preset is None else preset.title} ({one.home})"
    if one.until is not None:
        return f"{where} reached its provider's limit; its runs wait until {rfc3339(one.until)}."
    return f"{where} is not signed in; its runs wait."


LIST = read("login.list", Verb.READ, ListLogins, list[LoginView], list_logins, http=Http("GET", "/logins"))
CHECK = effect("login.check", Verb.CONTROL_AGENTS, CheckLogins, list[LoginCheck], check_logins, here_after=30.0,
               http=Http("POST", "/logins/check"))  # fmt: skip

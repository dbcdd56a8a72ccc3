"""Whether a token of a member holds, and who shows it: asked by the server, and again with every operation."""

from datetime import datetime, timedelta

from lamplighter.domain.access import Actor, NotItsHome, TokenVoid, Verb, require
from lamplighter.domain.tokens import is_token, token_hash
from lamplighter.kit.clock import Clock
from lamplighter.kit.records import changed
from lamplighter.services.context import Context
from lamplighter.store.tokens import HeldToken
from lamplighter.store.tx import Store, Tx

TOUCHED_EVERY = timedelta(minutes=1)
VERBS = frozenset(one.value for one in Verb)


def actor_of(held: HeldToken, now: datetime) -> Actor:
    """Raises TokenVoid for one that was revoked or has ended."""
    token = held.token
    if token.revoked_at is not None:
        raise TokenVoid("was revoked")
    if token.expires_at is not None and token.expires_at <= now:
        raise TokenVoid("has ended")
    scopes = frozenset(Verb(one) for one in token.scopes if one in VERBS) if token.scopes else None
    return Actor(token.member, held.role, token=token.id, scopes=scopes)


def find(tx: Tx, token: str, now: datetime) -> tuple[Actor, bool] | None:
    """Who shows this token, and whether its last use is to be noted. Raises TokenVoid."""
    held = tx.tokens.by_hash(token_hash(token))
    if held is None:
        return None
    return actor_of(held, now), _is_due(held, now)


def holder(tx: Tx, token: str, now: datetime) -> tuple[Actor, bool]:
    """Who holds the token with this id, and whether its use is to be noted. Raises TokenVoid."""
    held = tx.tokens.held(token)
    if held is None:
        raise TokenVoid("is gone with its member")
    return actor_of(held, now), _is_due(held, now)


def _is_due(held: HeldToken, now: datetime) -> bool:
    return held.token.used_at is None or now - held.token.used_at >= TOUCHED_EVERY


def touch(tx: Tx, token: str, now: datetime) -> None:
    tx.tokens.used(token, now)


def still_holds(tx: Tx, verb: Verb, ctx: Context) -> None:
    """The token and its member as they are now. Raises TokenVoid, Forbidden."""
    held = tx.tokens.held(ctx.actor.token or "")
    if held is None:
        raise TokenVoid("is gone with its member")
    now = actor_of(held, ctx.now)
    require(changed(ctx.actor, role=now.role, scopes=now.scopes), verb)


def need_home(tx: Tx) -> None:
    """Raises NotItsHome for a city that joined the organization of another."""
    own = tx.organizations.own()
    if own is None or own.home_city_id == tx.city:
        return
    names = [one.name for one in tx.organizations.cities_of(own.id) if one.id == own.home_city_id]
    raise NotItsHome(own.name, f"its home city, {names[0]}" if names else "its home city")


class StoredTokens:
    """Finds who shows a member's token, and notes its use; for a server."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def actor(self, token: str) -> Actor | None:
        """None for what is no token of the city. Raises TokenVoid, StoreUnavailable."""
        if not is_token(token):
            return None
        now = self._clock.now()
        found = await self._store.read(find, token, now)
        return None if found is None else changed(await self._noted(*found, now), is_proved=True)

    async def holder(self, signed_in: Actor) -> Actor:
        """The member whose token a browser was signed in with, as they are now. Raises TokenVoid, StoreUnavailable."""
        now = self._clock.now()
        return await self._noted(*await self._store.read(holder, signed_in.token or "", now), now)

    async def _noted(self, actor: Actor, is_due: bool, now: datetime) -> Actor:  # noqa: FBT001
        if is_due and actor.token is not None:
            await self._store.transact(touch, actor.token, now)
        return actor

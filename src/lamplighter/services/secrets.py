"""The secrets of a city: set, listed by name, deleted, and sealed anew under another key. No answer holds a value."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.domain.secrets import LONGEST, SHORTEST_MASKED, Sealed, SecretLocked, SecretUnknown, is_masked, is_name
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.host import Host
from lamplighter.services.operation import Http, effect, read, transaction
from lamplighter.store.secrets import SecretRow
from lamplighter.store.tx import Tx

_NAME = "Its name."


@dataclass(frozen=True)
class SecretView:
    """A secret without its value."""

    name: str
    created_at: datetime = given("When it was first set.")
    created_by: str = given("By whom.")
    changed_at: datetime = given("When it was last set.")
    changed_by: str = given("By whom.")
    key_id: str = given("The id of the key that opens it.")


@dataclass(frozen=True)
class SecretKept(SecretView):
    masked: bool = given(f"Whether it is masked in what programs print: it has at least {SHORTEST_MASKED} characters.")


@dataclass(frozen=True)
class SecretDeleted:
    name: str
    deleted: bool = True


@dataclass(frozen=True)
class KeyRotated:
    """`left` are the secrets that could not be opened, and so stay under the key they have."""

    key_id: str
    resealed: int
    left: list[str]


@dataclass(frozen=True)
class SetSecret:
    """Keep a secret, encrypted; programs get it in a variable whose value is `secret:NAME`."""

    name: str = given(_NAME, positional=True)
    secret: str = given("The value.")


@dataclass(frozen=True)
class ListSecrets:
    """The names of the secrets; their values are shown nowhere."""


@dataclass(frozen=True)
class DeleteSecret:
    """Delete a secret; whatever refers to it can no longer be started."""

    name: str = given(_NAME, positional=True)


@dataclass(frozen=True)
class RotateKey:
    """Make a new key and seal every secret with it; the old key stays, for backups."""


async def set_secret(host: Host, ask: SetSecret, ctx: Context) -> SecretKept:
    """Raises UsageError, KeyUnusable."""
    if not is_name(ask.name):
        raise UsageError(
            f"{ask.name[:64]!r} cannot be a secret's name.",
            hint="Use 1 to 64 letters, digits, `_`, `-` and `.`; the first is a letter or a digit.",
        )
    if not ask.secret or "\0" in ask.secret or len(ask.secret.encode()) > LONGEST:
        raise UsageError(f"A secret has 1 to {LONGEST} bytes and no NUL.")
    sealed = await seal(host, ask.name, ask.secret)
    who, now = ctx.actor.name, ctx.now
    row = SecretRow(ask.name, sealed.key_id, sealed.nonce, sealed.text, now, who, now, who)
    kept = await host.store.transact(put, row)
    return SecretKept(**vars(kept), masked=is_masked(ask.secret))


async def seal(host: Host, name: str, value: str) -> Sealed:
    """Raises KeyUnusable, Unavailable."""
    in_use = await host.store.read(keys_in_use)
    return await asyncio.to_thread(host.secret_box.seal, name, value, in_use)


def keys_in_use(tx: Tx) -> frozenset[str]:
    """The ids of the keys that the secrets of the city, those of connections too, are sealed with."""
    return frozenset(row.key_id for row in tx.secrets.all())


def put(tx: Tx, row: SecretRow) -> SecretView:
    tx.secrets.put(row)
    return view(tx.secrets.get(row.name) or row)


def list_secrets(tx: Tx, _ask: ListSecrets, _ctx: Context) -> list[SecretView]:
    return [view(row) for row in tx.secrets.all() if is_name(row.name)]


def delete_secret(tx: Tx, ask: DeleteSecret, _ctx: Context) -> SecretDeleted:
    """Raises SecretUnknown."""
    if not is_name(ask.name) or not tx.secrets.delete(ask.name):
        raise SecretUnknown(ask.name, [row.name for row in tx.secrets.all() if is_name(row.name)])
    return SecretDeleted(ask.name)


async def rotate_key(host: Host, _ask: RotateKey, _ctx: Context) -> KeyRotated:
    """May be repeated: a secret is always under a key that is kept. Raises KeyUnusable."""
    box = host.secret_box
    rows = await host.store.read(lambda tx: tx.secrets.all())
    key = await asyncio.to_thread(box.renew_key, {row.key_id for row in rows})
    done, left = 0, []
    for row in await host.store.read(lambda tx: tx.secrets.all()):
        try:
            value = await asyncio.to_thread(box.open, row.name, row.sealed)
        except SecretLocked:
            left.append(row.name)
            continue
        sealed = await asyncio.to_thread(box.seal, row.name, value, {key})
        done += await host.store.transact(reseal, row, sealed)
    return KeyRotated(key, done, left)


def reseal(tx: Tx, before: SecretRow, sealed: Sealed) -> bool:
    return tx.secrets.swap(before, sealed)


def view(row: SecretRow) -> SecretView:
    return SecretView(row.name, row.created_at, row.created_by, row.changed_at, row.changed_by, row.key_id)


SET = effect("secret.set", Verb.WRITE_SECRETS, SetSecret, SecretKept, set_secret, http=Http("PUT", "/secrets/{name}"))
LIST = read("secret.list", Verb.READ, ListSecrets, list[SecretView], list_secrets, http=Http("GET", "/secrets"))
DELETE = transaction("secret.delete", Verb.WRITE_SECRETS, DeleteSecret, SecretDeleted, delete_secret,
                     http=Http("DELETE", "/secrets/{name}", status=204))  # fmt: skip
ROTATE_KEY = effect("secret.rotate-key", Verb.WRITE_SECRETS, RotateKey, KeyRotated, rotate_key,
                    http=Http("POST", "/secrets/rotate-key"))  # fmt: skip

"""Tokens of the members of a city's organization: their hashes, what they are good for, and until when."""

from datetime import datetime

from lamplighter.domain.access import Role
from lamplighter.kit.records import record
from lamplighter.store.cities import OF_CITY
from lamplighter.store.engine import Db, Row, stamp
from lamplighter.store.tables import Table


@record
class TokenRow:
    """`ending` is the last characters of the token, by which people tell it apart; `scopes` is empty for all rights."""

    id: str
    member: str
    name: str
    hash: str
    ending: str
    scopes: tuple[str, ...]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    used_at: datetime | None = None
    revoked_at: datetime | None = None


@record
class HeldToken:
    """A token with the role that its member has now."""

    token: TokenRow
    role: Role


TOKENS = Table(TokenRow)
_OURS = f"organization_id = {OF_CITY}"
_HELD = f"""
    SELECT {", ".join(f"tokens.{name}" for name in TOKENS.names)}, members.role AS role FROM tokens
    JOIN members ON members.organization_id = tokens.organization_id AND members.name = tokens.member
    WHERE tokens.{_OURS}"""
ADD = f"INSERT INTO tokens (organization_id, {TOKENS.listed()}) VALUES ({OF_CITY}, {TOKENS.given()})"
ALL = f"SELECT {TOKENS.listed()} FROM tokens WHERE {_OURS} ORDER BY id"
# the index tokens_of serves this
OF = f"SELECT {TOKENS.listed()} FROM tokens WHERE {_OURS} AND member = :member ORDER BY id"
# the index tokens_by_hash serves this
BY_HASH = f"{_HELD} AND tokens.hash = :hash"
HELD = f"{_HELD} AND tokens.id = :id"
LOCK = f"SELECT {TOKENS.listed()} FROM tokens WHERE {_OURS} AND id = :id {{for_update}}"
REVOKE = f"UPDATE tokens SET revoked_at = :now WHERE {_OURS} AND id = :id AND revoked_at IS NULL"
USED = f"UPDATE tokens SET used_at = :now WHERE {_OURS} AND id = :id AND (used_at IS NULL OR used_at < :now)"
_written = TOKENS.writer()


class Tokens:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: TokenRow) -> None:
        self._db.execute(ADD, _written(row) | {"city": self._city})

    def all(self) -> list[TokenRow]:
        return [TOKENS.read(row) for row in self._db.rows(ALL, {"city": self._city})]

    def of(self, member: str) -> list[TokenRow]:
        return [TOKENS.read(row) for row in self._db.rows(OF, {"city": self._city, "member": member})]

    def by_hash(self, hashed: str) -> HeldToken | None:
        return _held(self._db.row(BY_HASH, {"city": self._city, "hash": hashed}))

    def held(self, token: str) -> HeldToken | None:
        return _held(self._db.row(HELD, {"city": self._city, "id": token}))

    def lock(self, token: str) -> TokenRow | None:
        row = self._db.row(LOCK, {"city": self._city, "id": token})
        return None if row is None else TOKENS.read(row)

    def revoke(self, token: str, now: datetime) -> bool:
        """False if it was revoked already."""
        return self._db.execute(REVOKE, {"city": self._city, "id": token, "now": stamp(now)}) == 1

    def used(self, token: str, now: datetime) -> None:
        self._db.execute(USED, {"city": self._city, "id": token, "now": stamp(now)})


def _held(row: Row | None) -> HeldToken | None:
    return None if row is None else HeldToken(TOKENS.read(row), Role(row["role"]))

"""Secrets: encrypted values by name. What opens them is not in the database."""

from datetime import datetime

from lamplighter.domain.secrets import Sealed
from lamplighter.kit.records import record
from lamplighter.store.engine import Db
from lamplighter.store.tables import Table


@record
class SecretRow:
    name: str
    key_id: str
    nonce: str
    text: str
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str

    @property
    def sealed(self) -> Sealed:
        return Sealed(self.key_id, self.nonce, self.text)


SECRETS = Table(SecretRow)
PUT = f"""
    INSERT INTO secrets (city_id, {SECRETS.listed()}) VALUES (:city, {SECRETS.given()})
    ON CONFLICT (city_id, name) DO UPDATE SET key_id = excluded.key_id, nonce = excluded.nonce, text = excluded.text,
        changed_at = excluded.changed_at, changed_by = excluded.changed_by"""
# the primary key serves these
ALL = f"SELECT {SECRETS.listed()} FROM secrets WHERE city_id = :city ORDER BY name"
ONE = f"SELECT {SECRETS.listed()} FROM secrets WHERE city_id = :city AND name = :name"
SWAP = """
    UPDATE secrets SET key_id = :key_id, nonce = :nonce, text = :text
    WHERE city_id = :city AND name = :name AND nonce = :before"""
DELETE = "DELETE FROM secrets WHERE city_id = :city AND name = :name"
_written = SECRETS.writer()


class Secrets:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def put(self, row: SecretRow) -> None:
        self._db.execute(PUT, _written(row) | {"city": self._city})

    def all(self) -> list[SecretRow]:
        return [SECRETS.read(row) for row in self._db.rows(ALL, {"city": self._city})]

    def get(self, name: str) -> SecretRow | None:
        row = self._db.row(ONE, {"city": self._city, "name": name})
        return None if row is None else SECRETS.read(row)

    def swap(self, before: SecretRow, sealed: Sealed) -> bool:
        """Put the same value sealed anew in place of `before`; False if that was changed or deleted meanwhile."""
        params = {"key_id": sealed.key_id, "nonce": sealed.nonce, "text": sealed.text, "before": before.nonce}
        return self._db.execute(SWAP, params | {"city": self._city, "name": before.name}) == 1

    def delete(self, name: str) -> bool:
        return self._db.execute(DELETE, {"city": self._city, "name": name}) == 1

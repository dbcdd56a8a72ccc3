"""Logins of agent programs, as far as runs found out whether they work. There are few of them."""

from datetime import datetime

from lamplighter.domain.sessions.logins import Login, LoginKey, LoginState
from lamplighter.store.engine import Db, Row, instant, instant_or_none, stamp, stamp_or_none

_KEY = "city_id = :city AND node = :node AND preset = :preset AND home = :home AND account = :account"
_COLUMNS = """
    node, preset, home, account, model, state, since, until, detail, marks, looked_at, trying, trying_since,
    configuration"""
ALL = f"SELECT {_COLUMNS} FROM logins WHERE city_id = :city ORDER BY node, preset, home, account, model"
NOT_WORKING = f"SELECT {_COLUMNS} FROM logins WHERE city_id = :city AND state <> 'works' ORDER BY since, preset, home"
PUT = f"""
    INSERT INTO logins (city_id, {_COLUMNS})
    VALUES (:city, :node, :preset, :home, :account, :model, :state, :since, :until, :detail, :marks, :looked_at,
        :trying, :trying_since, :configuration)
    ON CONFLICT (city_id, node, preset, home, account, model) DO UPDATE
    SET state = excluded.state, since = excluded.since, until = excluded.until, detail = excluded.detail,
        marks = excluded.marks, looked_at = excluded.looked_at, trying = excluded.trying,
        trying_since = excluded.trying_since, configuration = excluded.configuration"""
# Compare and set: of the runs that wait, one tries.
TRY = f"""
    UPDATE logins SET trying = :run, trying_since = :now, looked_at = :now
    WHERE {_KEY} AND model = :model AND state = 'login' AND (trying IS NULL OR trying = :trying)"""
LEAVE = "UPDATE logins SET trying = NULL, trying_since = NULL WHERE city_id = :city AND trying = :run"
LOOK_AGAIN = f"UPDATE logins SET looked_at = NULL, trying = NULL WHERE {_KEY} AND state = 'login'"
LOOKED = f"UPDATE logins SET looked_at = :now, marks = :marks WHERE {_KEY} AND state = 'login'"
REMOVE = f"DELETE FROM logins WHERE {_KEY} AND model = :model"
PRUNE = "DELETE FROM logins WHERE city_id = :city AND state = 'works' AND looked_at < :before"


class Logins:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def all(self) -> list[Login]:
        return [_login(row) for row in self._db.rows(ALL, {"city": self._city})]

    def not_working(self) -> list[Login]:
        """Those that are refused or limited, the longest first."""
        return [_login(row) for row in self._db.rows(NOT_WORKING, {"city": self._city})]

    def put(self, one: Login) -> None:
        params: dict[str, object] = self._key(one.key) | {
            "model": one.model,
            "state": one.state.value,
            "since": stamp(one.since),
            "until": stamp_or_none(one.until),
            "detail": one.detail,
            "marks": one.marks,
            "looked_at": stamp_or_none(one.looked_at),
            "trying": one.trying,
            "trying_since": stamp_or_none(one.trying_since),
            "configuration": one.configuration,
        }
        self._db.execute(PUT, params)

    def try_it(self, one: Login, run: str, now: datetime) -> bool:
        """Let this run try a refused login for all that wait; False if another run was faster."""
        params = self._key(one.key) | {"model": one.model, "run": run, "trying": one.trying, "now": stamp(now)}
        return self._db.execute(TRY, params) == 1

    def leave(self, run: str) -> bool:
        """The run does not try a login any more, and found nothing out."""
        return self._db.execute(LEAVE, {"city": self._city, "run": run}) > 0

    def look_again(self, key: LoginKey) -> bool:
        """The next run that waits for this login tries it."""
        return self._db.execute(LOOK_AGAIN, self._key(key)) > 0

    def looked(self, key: LoginKey, marks: str, now: datetime) -> None:
        """It was asked for and is still missing."""
        self._db.execute(LOOKED, self._key(key) | {"marks": marks, "now": stamp(now)})

    def remove(self, one: Login) -> None:
        self._db.execute(REMOVE, self._key(one.key) | {"model": one.model})

    def prune(self, *, before: datetime) -> int:
        """Forget logins that work and were not used since `before`."""
        return self._db.execute(PRUNE, {"city": self._city, "before": stamp(before)})

    def _key(self, key: LoginKey) -> dict[str, object]:
        return {
            "city": self._city, "node": key.node, "preset": key.preset, "home": key.home, "account": key.account,
        }  # fmt: skip


def _login(row: Row) -> Login:
    return Login(
        key=LoginKey(row["node"], row["preset"], row["home"], row["account"]),
        state=LoginState(row["state"]),
        since=instant(row["since"]),
        model=row["model"],
        until=instant_or_none(row["until"]),
        detail=row["detail"],
        marks=row["marks"],
        looked_at=instant_or_none(row["looked_at"]),
        trying=row["trying"],
        trying_since=instant_or_none(row["trying_since"]),
        configuration=row["configuration"],
    )

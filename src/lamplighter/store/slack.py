"""Slack: its workspaces, what it told, who is who there, and the threads that are conversations."""

import json
from collections.abc import Iterable
from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.engine import Db, stamp
from lamplighter.store.tables import Table


@record
class Installation:
    """An app of one's own in a workspace of Slack. `preset` is the agent program of its conversations; empty for none.

    `hears` says that its signing secret is known, `has_socket` that its token for Socket Mode is.
    """

    team: str
    name: str
    bot_user: str
    bot_id: str
    preset: str
    rig: str
    mode: str
    hears: int
    has_socket: int
    installed_at: datetime
    installed_by: str
    configurations: str = "[]"
    """Names of those in which its conversations may work, as JSON; the only one, or one that is chosen."""
    scopes: str = ""
    """What the app may do, with commas between, as Slack said last; empty where it did not say."""


@record
class Person:
    """A user of Slack. `how` is `email` or `link`; one without a member waits to be linked by the code.

    `name` is what they are called there, as far as Slack was asked.
    """

    team: str
    person: str
    member: str | None
    how: str
    code: str | None
    changed_at: datetime
    name: str = ""


@record
class Thread:
    """A thread that is a conversation.

    `run` is the run of it that is being told in the thread, `number` the last event of its `session` that was told.
    `message` is the message that is being edited, empty for none, and `said` its text. `marked` are the messages
    that show that somebody works on them. `others` says that more than one person has spoken there. While it
    `is_followed`, the outbox item `follower` tells on. `doing` is what the message shows beside its text of what is
    being done; empty where it shows nothing of the kind. Without `started_by` nobody has spoken there yet. `stream`
    says how the message is streamed, as JSON; empty where it is not.
    """

    id: str
    team: str
    channel: str
    thread: str
    started_by: str
    run: str
    created_at: datetime
    others: int = 0
    session: str = ""
    number: int = 0
    message: str = ""
    said: str = ""
    marked: str = ""
    is_followed: int = 0
    doing: str = ""
    follower: str = ""
    stream: str = ""


@record
class Early:
    """A reply in a thread of which the first message has not come yet; `said` is the reply, as JSON."""

    team: str
    channel: str
    thread: str
    message: str
    said: str
    came_at: datetime


@record
class Contact:
    """When a workspace last told something, how many sockets were open at `looked_at`, and what last failed.

    `unstreamed` is why Slack last refused to have an answer streamed; empty since it has taken one.
    """

    team: str
    heard_at: datetime | None = None
    sockets: int = 0
    looked_at: datetime | None = None
    error: str = ""
    failed_at: datetime | None = None
    unstreamed: str = ""
    unstreamed_at: datetime | None = None


INSTALLATIONS, PEOPLE, THREADS, EARLY = Table(Installation), Table(Person), Table(Thread), Table(Early)
CONTACTS = Table(Contact)
# the primary keys serve these
PUT = f"""
    INSERT INTO slack_installations (city_id, {INSTALLATIONS.listed()}) VALUES (:city, {INSTALLATIONS.given()})
    ON CONFLICT (city_id, team) DO UPDATE SET
    {", ".join(f"{one} = excluded.{one}" for one in INSTALLATIONS.names[1:])}"""
ALL = f"SELECT {INSTALLATIONS.listed()} FROM slack_installations WHERE city_id = :city ORDER BY team"
GET = f"SELECT {INSTALLATIONS.listed()} FROM slack_installations WHERE city_id = :city AND team = :team"
REMOVE = "DELETE FROM slack_installations WHERE city_id = :city AND team = :team"
HEARD = """
    INSERT INTO slack_events (city_id, team, event, came_at) VALUES (:city, :team, :event, :now)
    ON CONFLICT (city_id, team, event) DO NOTHING"""
PRUNE = """
    DELETE FROM slack_events WHERE city_id = :city AND (team, event) IN (
        SELECT team, event FROM slack_events WHERE city_id = :city AND came_at < :before LIMIT :limit)"""
PUT_PERSON = f"""
    INSERT INTO slack_people (city_id, {PEOPLE.listed()}) VALUES (:city, {PEOPLE.given()})
    ON CONFLICT (city_id, team, person) DO UPDATE SET
    {", ".join(f"{one} = excluded.{one}" for one in PEOPLE.names[2:])}"""
PERSON = f"SELECT {PEOPLE.listed()} FROM slack_people WHERE city_id = :city AND team = :team AND person = :person"
PEOPLE_ALL = f"SELECT {PEOPLE.listed()} FROM slack_people WHERE city_id = :city ORDER BY team, person"
FORGET_PEOPLE = "DELETE FROM slack_people WHERE city_id = :city AND team = :team"
ADD_THREAD = f"""
    INSERT INTO slack_threads (city_id, {THREADS.listed()}) VALUES (:city, {THREADS.given()})
    ON CONFLICT (city_id, team, channel, thread) DO NOTHING"""
THREAD = f"SELECT {THREADS.listed()} FROM slack_threads WHERE city_id = :city AND id = :id"
# the index slack_threads_once serves this
FIND_THREAD = f"""
    SELECT {THREADS.listed()} FROM slack_threads
    WHERE city_id = :city AND team = :team AND channel = :channel AND thread = :thread"""
# the index slack_threads_of_run serves this
OF_RUN = f"SELECT {THREADS.listed()} FROM slack_threads WHERE city_id = :city AND run = :run"
FOLLOWED_IN = f"""
    SELECT {THREADS.listed()} FROM slack_threads
    WHERE city_id = :city AND team = :team AND channel = :channel AND is_followed = 1"""
CHANGING = (
    "started_by", "others", "run", "session", "number", "message", "said", "marked", "is_followed", "doing", "follower",
    "stream",
)  # fmt: skip
SAVE_THREAD = f"UPDATE slack_threads SET {THREADS.assigned(*CHANGING)} WHERE city_id = :city AND id = :id"
# the index slack_threads_of_run serves this
DELETE_OF_RUNS = "DELETE FROM slack_threads WHERE city_id = :city AND run {any:ids}"
# the primary key serves these
PUT_CONTACT = f"""
    INSERT INTO slack_contacts (city_id, {CONTACTS.listed()}) VALUES (:city, {CONTACTS.given()})
    ON CONFLICT (city_id, team) DO UPDATE SET """
CAME = f"{PUT_CONTACT} heard_at = excluded.heard_at"
LOOKED = f"{PUT_CONTACT} sockets = excluded.sockets, looked_at = excluded.looked_at"
FAILED = f"{PUT_CONTACT} error = excluded.error, failed_at = excluded.failed_at"
UNSTREAMED = f"{PUT_CONTACT} unstreamed = excluded.unstreamed, unstreamed_at = excluded.unstreamed_at"
SCOPED = "UPDATE slack_installations SET scopes = :scopes WHERE city_id = :city AND team = :team"
CONTACT = f"SELECT {CONTACTS.listed()} FROM slack_contacts WHERE city_id = :city AND team = :team"
CONTACTS_ALL = f"SELECT {CONTACTS.listed()} FROM slack_contacts WHERE city_id = :city ORDER BY team"
FORGET_CONTACT = "DELETE FROM slack_contacts WHERE city_id = :city AND team = :team"
# the index slack_threads_once serves this
TALKS = """
    SELECT team, channel, count(*) AS n FROM slack_threads WHERE city_id = :city
    GROUP BY team, channel ORDER BY team, channel"""
KEEP_EARLY = f"""
    INSERT INTO slack_early (city_id, {EARLY.listed()}) VALUES (:city, {EARLY.given()})
    ON CONFLICT (city_id, team, channel, thread, message) DO NOTHING"""
EARLY_OF = f"""
    SELECT {EARLY.listed()} FROM slack_early
    WHERE city_id = :city AND team = :team AND channel = :channel AND thread = :thread ORDER BY message"""
TAKE_EARLY = """
    DELETE FROM slack_early
    WHERE city_id = :city AND team = :team AND channel = :channel AND thread = :thread AND message = :message"""
FORGET_EARLY = "DELETE FROM slack_early WHERE city_id = :city AND came_at < :before"
_installation, _person, _thread = INSTALLATIONS.writer(), PEOPLE.writer(), THREADS.writer()
_early, _contact = EARLY.writer(), CONTACTS.writer()
_saved = THREADS.writer("id", *CHANGING)


class Slack:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    # ── workspaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, row: Installation) -> None:
        """Add it, or replace what was installed in that workspace."""
        self._db.execute(PUT, _installation(row) | {"city": self._city})

    def all(self) -> list[Installation]:
        return [INSTALLATIONS.read(row) for row in self._db.rows(ALL, {"city": self._city})]

    def get(self, team: str) -> Installation | None:
        row = self._db.row(GET, {"city": self._city, "team": team})
        return None if row is None else INSTALLATIONS.read(row)

    def remove(self, team: str) -> bool:
        """Who is who there goes with it, and when it was reached."""
        self._db.execute(FORGET_CONTACT, {"city": self._city, "team": team})
        self._db.execute(FORGET_PEOPLE, {"city": self._city, "team": team})
        return self._db.execute(REMOVE, {"city": self._city, "team": team}) == 1

    # ── whether it is reached ─────────────────────────────────────────────────────────────────────────────────────

    def came(self, team: str, now: datetime) -> None:
        """Slack told something."""
        self._db.execute(CAME, _contact(Contact(team, heard_at=now)) | {"city": self._city})

    def looked(self, team: str, sockets: int, now: datetime) -> None:
        """So many sockets are open."""
        self._db.execute(LOOKED, _contact(Contact(team, sockets=sockets, looked_at=now)) | {"city": self._city})

    def failed(self, team: str, error: str, now: datetime) -> None:
        self._db.execute(FAILED, _contact(Contact(team, error=error, failed_at=now)) | {"city": self._city})

    def unstreamed(self, team: str, why: str, now: datetime) -> None:
        """Slack refused to have an answer streamed; without a reason it has taken one."""
        row = Contact(team, unstreamed=why, unstreamed_at=now if why else None)
        self._db.execute(UNSTREAMED, _contact(row) | {"city": self._city})

    def scoped(self, team: str, scopes: str) -> None:
        """What the app may do there, as Slack says."""
        self._db.execute(SCOPED, {"city": self._city, "team": team, "scopes": scopes})

    def contact(self, team: str) -> Contact:
        row = self._db.row(CONTACT, {"city": self._city, "team": team})
        return Contact(team) if row is None else CONTACTS.read(row)

    def contacts(self) -> list[Contact]:
        return [CONTACTS.read(row) for row in self._db.rows(CONTACTS_ALL, {"city": self._city})]

    def talks(self) -> dict[tuple[str, str], int]:
        """How many threads of each workspace and channel are conversations."""
        rows = self._db.rows(TALKS, {"city": self._city})
        return {(str(row["team"]), str(row["channel"])): int(row["n"]) for row in rows}

    # ── what it told ──────────────────────────────────────────────────────────────────────────────────────────────

    def heard(self, team: str, event: str, now: datetime) -> bool:
        """False if it was told before."""
        return self._db.execute(HEARD, {"city": self._city, "team": team, "event": event, "now": stamp(now)}) == 1

    def prune(self, *, before: datetime, limit: int) -> int:
        return self._db.execute(PRUNE, {"city": self._city, "before": stamp(before), "limit": limit})

    # ── people ────────────────────────────────────────────────────────────────────────────────────────────────────

    def put_person(self, row: Person) -> None:
        self._db.execute(PUT_PERSON, _person(row) | {"city": self._city})

    def person(self, team: str, person: str) -> Person | None:
        row = self._db.row(PERSON, {"city": self._city, "team": team, "person": person})
        return None if row is None else PEOPLE.read(row)

    def people(self) -> list[Person]:
        return [PEOPLE.read(row) for row in self._db.rows(PEOPLE_ALL, {"city": self._city})]

    # ── threads ───────────────────────────────────────────────────────────────────────────────────────────────────

    def add_thread(self, row: Thread) -> bool:
        """False if that thread is a conversation already."""
        return self._db.execute(ADD_THREAD, _thread(row) | {"city": self._city}) == 1

    def thread(self, thread: str) -> Thread | None:
        return self._a_thread(THREAD, {"id": thread})

    def lock_thread(self, thread: str) -> Thread | None:
        return self._a_thread(THREAD + " {for_update}", {"id": thread})

    def find_thread(self, team: str, channel: str, thread: str) -> Thread | None:
        """That thread, locked; None if it is no conversation."""
        return self._a_thread(FIND_THREAD + " {for_update}", {"team": team, "channel": channel, "thread": thread})

    def of_run(self, run: str) -> Thread | None:
        """The thread that tells of that run, locked."""
        return self._a_thread(OF_RUN + " LIMIT 1 {for_update}", {"run": run})

    def is_thread(self, team: str, channel: str, thread: str) -> bool:
        return self._a_thread(FIND_THREAD, {"team": team, "channel": channel, "thread": thread}) is not None

    def followed_in(self, team: str, channel: str) -> list[Thread]:
        """Those of a channel in which something works."""
        params = {"city": self._city, "team": team, "channel": channel}
        return [THREADS.read(row) for row in self._db.rows(FOLLOWED_IN, params)]

    def save_thread(self, row: Thread) -> None:
        self._db.execute(SAVE_THREAD, _saved(row) | {"city": self._city})

    def delete_of_runs(self, runs: Iterable[str]) -> int:
        return self._db.execute(DELETE_OF_RUNS, {"city": self._city, "ids": json.dumps(sorted(runs))})

    # ── replies that came too early ───────────────────────────────────────────────────────────────────────────────

    def keep_early(self, row: Early) -> None:
        self._db.execute(KEEP_EARLY, _early(row) | {"city": self._city})

    def early_of(self, team: str, channel: str, thread: str) -> list[Early]:
        """In the order in which they were written."""
        params = {"city": self._city, "team": team, "channel": channel, "thread": thread}
        return [EARLY.read(row) for row in self._db.rows(EARLY_OF, params)]

    def take_early(self, row: Early) -> bool:
        """False if another has taken it."""
        params = {"team": row.team, "channel": row.channel, "thread": row.thread, "message": row.message}
        return self._db.execute(TAKE_EARLY, params | {"city": self._city}) == 1

    def forget_early(self, *, before: datetime) -> int:
        return self._db.execute(FORGET_EARLY, {"city": self._city, "before": stamp(before)})

    def _a_thread(self, sql: str, params: dict[str, object]) -> Thread | None:
        row = self._db.row(sql, params | {"city": self._city})
        return None if row is None else THREADS.read(row)

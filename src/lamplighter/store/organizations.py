"""The organization of a city: its name, its home city, which cities are in it, and invitations to join it."""

from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.cities import OF_CITY
from lamplighter.store.engine import Db, stamp
from lamplighter.store.members import MEMBERS, MemberRow
from lamplighter.store.tables import Table
from lamplighter.store.tokens import TOKENS, TokenRow


@record
class OrganizationRow:
    """`home_city_id` is the city whose local owner is an owner of the organization."""

    id: str
    name: str
    created_at: datetime
    home_city_id: str


@record
class CityInIt:
    id: str
    name: str
    created_at: datetime


@record
class Invitation:
    """The token that is shown as one, the organization it is of, and the role its member has now."""

    token: TokenRow
    organization: str
    role: str


ORGANIZATIONS = Table(OrganizationRow)
CITIES = Table(CityInIt)
GET = f"SELECT {ORGANIZATIONS.listed()} FROM organizations WHERE id = "
OWN = GET + OF_CITY
LOCK = f"{GET}:id {{for_update}}"
# the index cities_of_organization serves these
CITIES_OF = f"SELECT {CITIES.listed()} FROM cities WHERE organization_id = :id ORDER BY id"
MEMBERS_OF = f"SELECT {MEMBERS.listed()} FROM members WHERE organization_id = :id ORDER BY name"
# the index tokens_by_hash serves this
INVITATIONS = f"""
    SELECT {", ".join(f"tokens.{name}" for name in TOKENS.names)}, tokens.organization_id AS organization,
           members.role AS role
    FROM tokens
    JOIN members ON members.organization_id = tokens.organization_id AND members.name = tokens.member
    WHERE tokens.hash = :hash ORDER BY tokens.organization_id"""
ADD = f"INSERT INTO organizations ({ORGANIZATIONS.listed()}) VALUES ({ORGANIZATIONS.given()})"
RENAME = f"UPDATE organizations SET name = :name WHERE id = {OF_CITY}"
SET_HOME = f"UPDATE organizations SET home_city_id = :home WHERE id = {OF_CITY}"
USE_UP = "UPDATE tokens SET revoked_at = :now WHERE organization_id = :id AND hash = :hash AND revoked_at IS NULL"
MOVE = f"UPDATE cities SET organization_id = :to WHERE id = :moved AND organization_id = {OF_CITY}"
END = """
    DELETE FROM organizations
    WHERE id = :id AND NOT EXISTS (SELECT 1 FROM cities WHERE cities.organization_id = :id)"""
COUNT = """
    SELECT (SELECT count(*) FROM members WHERE organization_id = :id) AS members,
           (SELECT count(*) FROM tokens WHERE organization_id = :id AND revoked_at IS NULL
            AND (expires_at IS NULL OR expires_at > :now)) AS tokens"""
_written = ORGANIZATIONS.writer()


class Organizations:
    """What names an organization by its id is for the one that a city leaves or is invited to."""

    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def own(self) -> OrganizationRow | None:
        """None before the city has a row."""
        return self._one(OWN, {"city": self._city})

    def lock(self, organization: str) -> OrganizationRow | None:
        return self._one(LOCK, {"id": organization})

    def is_home(self) -> bool:
        """Whether this city is the one from which its organization is looked after."""
        own = self.own()
        return own is not None and own.home_city_id == self._city

    def cities(self) -> list[CityInIt]:
        """Those of the city's own organization."""
        own = self.own()
        return [] if own is None else self.cities_of(own.id)

    def cities_of(self, organization: str) -> list[CityInIt]:
        return [CITIES.read(row) for row in self._db.rows(CITIES_OF, {"id": organization})]

    def counts(self, organization: str, now: datetime) -> tuple[int, int]:
        """How many members it has, and how many tokens that hold."""
        row = self._db.row(COUNT, {"id": organization, "now": stamp(now)})
        return (0, 0) if row is None else (row["members"], row["tokens"])

    def members_of(self, organization: str) -> list[MemberRow]:
        return [MEMBERS.read(row) for row in self._db.rows(MEMBERS_OF, {"id": organization})]

    def invitations(self, hashed: str) -> list[Invitation]:
        """The tokens with that hash, of whatever organization; more than one only where a city was copied."""
        rows = self._db.rows(INVITATIONS, {"hash": hashed})
        return [Invitation(TOKENS.read(row), row["organization"], row["role"]) for row in rows]

    def use_up(self, invitation: Invitation, now: datetime) -> bool:
        """False if somebody else has done so."""
        params = {"id": invitation.organization, "hash": invitation.token.hash, "now": stamp(now)}
        return self._db.execute(USE_UP, params) == 1

    def add(self, row: OrganizationRow) -> None:
        self._db.execute(ADD, _written(row))

    def rename(self, name: str) -> None:
        self._db.execute(RENAME, {"city": self._city, "name": name})

    def set_home(self, home: str) -> None:
        self._db.execute(SET_HOME, {"city": self._city, "home": home})

    def move(self, moved: str, to: str) -> bool:
        """Give a city of the own organization to another. False if it is not in it."""
        return self._db.execute(MOVE, {"city": self._city, "moved": moved, "to": to}) == 1

    def end(self, organization: str) -> bool:
        """Remove it with its members and tokens, unless a city is in it."""
        return self._db.execute(END, {"id": organization}) == 1

    def _one(self, sql: str, params: dict[str, object]) -> OrganizationRow | None:
        row = self._db.row(sql, params)
        return None if row is None else ORGANIZATIONS.read(row)

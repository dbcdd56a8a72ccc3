"""What `lamp doctor` says of secrets: those that cannot be opened here, and references to those that are not there."""

from collections.abc import Iterator

from lamplighter.app.secrets import box_of
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.secrets import unknown_secrets
from lamplighter.domain.secrets import SecretLocked
from lamplighter.services.doctor import Finding, Level

CHECK = "secrets"


def secrets(city: OpenCity, _fix: bool) -> Iterator[Finding]:  # noqa: FBT001  one shape for all checks
    rows = city.store.read(lambda tx: tx.secrets.all())
    box, locked = box_of(city), 0
    for row in rows:
        try:
            box.open(row.name, row.sealed)
        except SecretLocked as error:
            locked += 1
            yield Finding(CHECK, Level.PROBLEM, error.message, error.hint)
    for told in unknown_secrets(city.config.city, [row.name for row in rows]):
        yield Finding(CHECK, Level.PROBLEM, f"{told}.".replace("?.", "?"), "`lamp secret set NAME` keeps it.")
    if rows and not locked:
        yield Finding(CHECK, Level.OK, f"{len(rows)} secret{' opens' if len(rows) == 1 else 's open'}.")

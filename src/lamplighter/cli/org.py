"""`lamp org`: the organization of the city, its other cities, and moving to another one."""

import sys
from typing import Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.cli.secret import given_value
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.organizations import CityInView, CityMoved, InvitationMade, OrganizationView


def _organization(one: "OrganizationView", _ask: Any) -> None:
    home = next((city.name for city in one.cities if city.is_home), "")
    output.fields({}, {"Organization": one.name, "Home city": home, "Made": one.created_at})
    click.echo()
    cities = [to_json(city) | {"what": _what(city)} for city in one.cities]
    if len(cities) == 1:
        cities[0]["id"] = ""  # it is only to tell cities of one name apart
    output.table(cities, {"CITY": "name", "WHICH": "what", "ID": Col("id")}, empty="")
    click.echo()
    columns = {"MEMBER": "name", "ROLE": "role", "SINCE": Col("added_at", "time"), "ADDED BY": "added_by"}
    output.table([to_json(member) for member in one.members], columns, empty="No members. `lamp member add` adds some.")


def _what(city: "CityInView") -> str:
    said = (("home", city.is_home), ("this city", city.is_this))
    return ", ".join(word for word, is_so in said if is_so)


def _renamed(one: "OrganizationView", _ask: Any) -> None:
    click.echo(f"The organization is called {one.name} now.")


def _moved_home(one: "OrganizationView", _ask: Any) -> None:
    home = next(city.name for city in one.cities if city.is_home)
    click.echo(f"{one.name} is looked after from {home} now, whose local owner is an owner of it.")


def _invited(one: "InvitationMade", _ask: Any) -> None:
    click.echo(one.invitation)
    until = f" until {output.local_time(one.expires_at)}" if one.expires_at else ""
    click.echo(
        f"With it one city can join {one.organization}{until}: `lamp org join`, typed there, asks for it.", err=True
    )
    output.say(f"It is not shown again. `lamp token revoke {words.short_id(one.id)}` makes it void.", err=True)


def _put_out(one: "CityMoved", _ask: Any) -> None:
    click.echo(f"{one.city} has an organization of its own now. {one.before} has no more say in it.")


org = Subject(
    "org",
    "The organization of the city: cities of one database that share their members.",
    {"show": _organization, "rename": _renamed, "invite": _invited, "remove": _put_out, "home": _moved_home},
)


@org.command("join")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@carries_out("org.join")
def join(*, dry_run: bool, yes: bool) -> None:
    """Move the city to the organization that has invited it. Says who may then come in, and asks first.

    The invitation is asked for, or read from standard input; then --yes is needed.
    """
    from lamplighter.services.organizations import JOIN, JoinOrganization

    invitation = given_value("Invitation").strip()
    if not invitation:
        raise click.UsageError("No invitation was given; an owner makes one with `lamp org invite`.")
    told = do(JOIN, JoinOrganization(invitation, dry_run=True))
    if _may_go_on(told, dry_run=dry_run, yes=yes):
        _done(do(JOIN, JoinOrganization(invitation)))


@org.command("leave")
@click.option("--name", help="The name of its own organization; that of the city when left out.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@carries_out("org.leave")
def leave(*, name: str | None, dry_run: bool, yes: bool) -> None:
    """Take the city out of its organization, into one of its own without members. Says what ends, and asks first."""
    from lamplighter.services.organizations import LEAVE, LeaveOrganization

    told = do(LEAVE, LeaveOrganization(name, dry_run=True))
    if _may_go_on(told, dry_run=dry_run, yes=yes):
        _done(do(LEAVE, LeaveOrganization(name)))


def _may_go_on(told: "CityMoved", *, dry_run: bool, yes: bool) -> bool:
    """Raises UsageError where nobody can be asked."""
    if dry_run:
        if output.wants_json():
            output.fields(to_json(told), {})
        else:
            _tell(told)
        return False
    if yes:
        return True
    if output.wants_json():
        raise UsageError("With --json nobody is asked.", hint="Look with --dry-run, then add --yes.")
    _tell(told)
    if not sys.stdin.isatty():
        raise UsageError("Nobody can be asked here.", hint="Add --yes.")
    click.confirm("Go on?", abort=True)
    return True


def _tell(told: "CityMoved") -> None:
    for line in sentences(told):
        output.say(line)


def sentences(told: "CityMoved") -> list[str]:
    """What moving the city means for people."""
    comes = f"comes to {told.organization}, with {words.listed(told.cities)}"
    if not told.cities:
        comes = f"gets one of its own, called {told.organization}"
    found = [f"The city {told.city} leaves the organization {told.before} and {comes}."]
    if told.before_ends:
        found.append(f"The organization {told.before} ends, as it has no other city.")
    lost = [words.counted(count, noun) for count, noun in _lost(told) if count]
    if lost:
        found.append(f"Not good in this city any more: {words.listed(lost)} of {told.before}.")
    if told.slack_before:
        found.append(f"Slack: {words.counted(told.slack_before, 'user')} must be linked anew.")
    if told.members:
        found.append(f"May then come in: {', '.join(f'{one.name} ({one.role.value})' for one in told.members)}.")
    else:
        found.append("Nobody but its local owner may then come in; `lamp member add` adds others.")
    return found


def _lost(told: "CityMoved") -> tuple[tuple[int, str], ...]:
    return (told.members_before, "member"), (told.tokens_before, "token")


def _done(told: "CityMoved") -> None:
    if output.wants_json():
        output.fields(to_json(told), {})
        return
    click.echo(f"{told.city} is in the organization {told.organization} now.")


def command_for(_name: str) -> click.Command:
    return org

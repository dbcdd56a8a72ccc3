"""Settings: pause, destinations, Slack, members, tokens, the record of changes, doctor, the configuration."""

from typing import Any

from starlette.responses import Response

from lamplighter.kit.errors import LampError
from lamplighter.services.auditing import LIST as AUDIT
from lamplighter.services.auditing import ListAudit
from lamplighter.services.automations.operations import PAUSE, PauseCity
from lamplighter.services.config import SHOW as SHOW_CONFIG
from lamplighter.services.config import ShowConfig
from lamplighter.services.doctor import EXAMINE, Examine
from lamplighter.services.members import ADD, REMOVE, ROLE, ListMembers, PersonRole, RemoveMember
from lamplighter.services.members import LIST as MEMBERS
from lamplighter.services.notices import LIST as DESTINATIONS
from lamplighter.services.notices import LOG, RULES, TEST, ListDestinations, ListNotices, ShowRules, TryDestination
from lamplighter.services.slack.installing import LINK, WHO, FindSlackCode, LinkSlack, ListSlack, TrySlack
from lamplighter.services.slack.installing import LIST as SLACK
from lamplighter.services.slack.installing import TEST as TEST_SLACK
from lamplighter.services.suspension import RESUME, ResumeCity
from lamplighter.services.tokens import CREATE, REVOKE, CreateToken, ListTokens, RevokeToken, TokenMade
from lamplighter.services.tokens import LIST as TOKENS
from lamplighter.web.console.visit import KEYS_COOKIE, THEME_COOKIE, THEMES, Answer, Visit, back, own_path, together

YEAR = 365 * 86400
AUDIT_ROWS = 50
NOTICES = 15


async def settings(visit: Visit) -> Response:
    return await _settings(visit, None)


async def examine(visit: Visit) -> Response:
    return await _settings(visit, await visit.ask(EXAMINE, Examine()))


async def _settings(visit: Visit, findings: Answer[Any] | None) -> Response:
    config, destinations, notices, slack, _ = await together(
        visit.ask(SHOW_CONFIG, ShowConfig()), visit.ask(DESTINATIONS, ListDestinations()),
        visit.ask(LOG, ListNotices(limit=NOTICES)), visit.ask(SLACK, ListSlack()), visit.look(),
    )  # fmt: skip
    # asked for only where somebody wants to see it: with many automations it takes long
    rules = await visit.ask(RULES, ShowRules()) if "told" in visit.request.query_params else None
    return await visit.page(
        "settings.html", config=config, findings=findings, destinations=destinations, notices=notices, rules=rules,
        slack=slack,
    )  # fmt: skip


async def try_slack(visit: Visit) -> Response:
    """Raises Forbidden. What Slack answers is said on the page it was asked from."""
    team = visit.path["team"]
    try:
        found = await visit.do(TEST_SLACK, TrySlack(team))
    except LampError as error:
        if visit.why_not(TEST_SLACK.name):
            raise
        return back("/settings", f"Slack did not take the trial of {team}: {error.message}")
    return back("/settings", f"Slack knows the app in {found.name} as {found.bot_user}.")


async def ask_slack_link(visit: Visit) -> Response:
    """A member says on this page that it was they who were shown the code in Slack."""
    code = visit.query.get("code", "")
    asked = await visit.ask(WHO, FindSlackCode(code)) if code else None
    await visit.look()
    return await visit.page("slack_link.html", code=code, asked=asked)


async def slack_link(visit: Visit) -> Response:
    """Raises Forbidden."""
    form = await visit.form()
    try:
        found = await visit.do(LINK, LinkSlack(form["code"]))
    except LampError as error:
        if visit.why_not(LINK.name):
            raise
        return back("/settings", error.message)
    return back("/settings", f"In {found.team} you are {found.person}.")


async def try_destination(visit: Visit) -> Response:
    """Raises Forbidden. What the destination answers is said on the page it was asked from."""
    name = visit.path["name"]
    try:
        await visit.do(TEST, TryDestination(name))
    except LampError as error:
        if visit.why_not(TEST.name):
            raise
        return back("/settings", f"{name} did not take the trial: {error.message}")
    return back("/settings", f"{name} took the trial.")


async def people(visit: Visit) -> Response:
    return await _people(visit, None)


async def _people(visit: Visit, made: TokenMade | None) -> Response:
    """`made` is a token that is shown once."""
    members, tokens, _ = await together(
        visit.ask(MEMBERS, ListMembers()), visit.ask(TOKENS, ListTokens()), visit.look()
    )
    roles = [one.value for one in PersonRole]
    return await visit.page(
        "people.html", members=members, tokens=tokens, roles=roles, made=made, address="/settings/people"
    )


async def add_member(visit: Visit) -> Response:
    form = await visit.form()
    found = await visit.do(ADD, ADD.asked({"name": form["name"], "role": form["role"]}))
    return back("/settings/people", f"{found.name} is a member now, as {found.role.value}.")


async def set_role(visit: Visit) -> Response:
    form = await visit.form()
    found = await visit.do(ROLE, ROLE.asked({"name": visit.path["name"], "role": form["role"]}))
    return back("/settings/people", f"{found.name} is {found.role.value} now.")


async def remove_member(visit: Visit) -> Response:
    found = await visit.do(REMOVE, RemoveMember(visit.path["name"]))
    return back("/settings/people", f"{found.name} is no member any more; their tokens are void.")


async def create_token(visit: Visit) -> Response:
    """The answer is the page itself: the token is shown once, and kept nowhere."""
    form = await visit.form()
    ask = CreateToken(form["name"], form["member"] or None, expires=form["expires"] or "90d")
    made = await visit.do(CREATE, ask)
    return await _people(visit, made)


async def revoke_token(visit: Visit) -> Response:
    await visit.do(REVOKE, RevokeToken(visit.path["token"]))
    return back("/settings/people", "Revoked: it is void at once.")


async def audit(visit: Visit) -> Response:
    query = visit.query
    ask = ListAudit(query.get("actor"), query.get("before"), AUDIT_ROWS + 1)
    found, _ = await together(visit.ask(AUDIT, ask), visit.look())
    shown = [] if found.error else found.value[:AUDIT_ROWS]
    older = shown[-1].id if not found.error and len(found.value) > AUDIT_ROWS else None
    return await visit.page("audit.html", found=found, shown=shown, older=older, query=query)


async def pause(visit: Visit) -> Response:
    await visit.do(PAUSE, PauseCity())
    return back(own_path((await visit.form()).get("next")), "Paused: nothing fires and no run starts.")


async def resume(visit: Visit) -> Response:
    done = await visit.do(RESUME, ResumeCity())
    said = f"Lifted: {' and '.join(done.lifted)}." if done.lifted else "The city was neither paused nor suspended."
    return back(own_path((await visit.form()).get("next")), said)


async def keys(visit: Visit) -> Response:
    """Switch single keys off or on in this browser."""
    form = await visit.form()
    off = form["keys"] == "off"
    answer = back(own_path(form.get("next")), "Single keys do nothing now." if off else "Single keys work again.")
    answer.set_cookie(KEYS_COOKIE, "off" if off else "on", max_age=YEAR, path="/", samesite="lax")
    return answer


async def theme(visit: Visit) -> Response:
    form = await visit.form()
    answer = back(own_path(form.get("next")))
    if form.get("theme") in THEMES:
        answer.set_cookie(THEME_COOKIE, form["theme"], max_age=YEAR, path="/", samesite="lax")
    return answer


PAGES = (
    ("GET", "/settings", settings),
    ("GET", "/settings/doctor", examine),
    ("GET", "/settings/people", people),
    ("GET", "/settings/audit", audit),
    ("POST", "/settings/pause", pause),
    ("POST", "/settings/resume", resume),
    ("POST", "/settings/theme", theme),
    ("POST", "/settings/keys", keys),
    ("POST", "/settings/destinations/{name}/test", try_destination),
    ("GET", "/settings/slack/link", ask_slack_link),
    ("POST", "/settings/slack/link", slack_link),
    ("POST", "/settings/slack/{team}/test", try_slack),
    ("POST", "/settings/people/add", add_member),
    ("POST", "/settings/people/tokens", create_token),
    ("POST", "/settings/people/tokens/{token}/revoke", revoke_token),
    ("POST", "/settings/people/{name}/role", set_role),
    ("POST", "/settings/people/{name}/remove", remove_member),
)

"""Who may: what is judged with every operation, what of it is on record, and what tokens and kept views are whose."""

from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.access import Actor, Forbidden, Role, RunOver, TokenVoid, Verb, of_run, owner, system
from lamplighter.domain.runs.query import QueryWrong
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.records import changed
from lamplighter.services import operation, saved_views, signing_in, tokens
from lamplighter.services.context import Context
from lamplighter.services.members import MemberUnknown
from lamplighter.services.operation import admit, is_audited, permit
from lamplighter.services.runs import operations as runs
from lamplighter.services.runs import review
from lamplighter.services.saved_views import MOST, DeleteView, ListViews, SaveView, TooManyViews
from lamplighter.services.tokens import CreateToken, ListTokens, RevokeToken, TokenUnknown
from lamplighter.store.members import MemberRow
from lamplighter.store.sessions import SessionEnd, SessionRow

ANN, MAX = Actor("ann", Role.ADMIN), Actor("max", Role.MEMBER)


def by(city: City, actor: Actor, surface: str = "cli") -> Context:
    return changed(city.context, actor=actor, surface=surface)


@pytest.fixture
def peopled(city: City) -> City:
    now = city.clock.now()
    for name, role in (("ann", Role.ADMIN), ("max", Role.MEMBER)):
        row = MemberRow(name, role, now, "tester")
        city.run(lambda tx, row=row: tx.members.add(row))
    return city


# ── the right, and the token that is shown ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("actor", "verb", "asks_nothing"),
    [
        (owner("ann"), Verb.RESOLVE_RUN, True),
        (owner("ann"), Verb.WRITE_MEMBERS, False),
        (system("patrol"), Verb.CANCEL_RUN, True),
        (of_run("run_1"), Verb.COMPLETE_RUN, True),
        (of_run("run_1"), Verb.KEEP_NOTES, False),
        (Actor("ann", Role.OWNER, token="tok_1"), Verb.READ, False),  # noqa: S106  an id
        (Actor("ann", Role.OWNER, run="run_1"), Verb.READ, True),
    ],
)
def test_only_what_may_have_changed_since_is_asked_of_the_store(actor: Actor, verb: Verb, asks_nothing: bool) -> None:  # noqa: FBT001
    assert admit(actor, verb) is asks_nothing


@pytest.mark.parametrize(
    ("actor", "verb"), [(MAX, Verb.RESOLVE_RUN), (of_run("run_1"), Verb.READ), (ANN, Verb.WRITE_MEMBERS)]
)
def test_who_lacks_the_right_is_refused_before_anything_is_asked(actor: Actor, verb: Verb) -> None:
    with pytest.raises(Forbidden):
        admit(actor, verb)


@pytest.mark.parametrize("locks", [True, False])
def test_the_token_of_a_run_holds_until_its_end_and_then_only_to_repeat_its_completion(
    city: City, *, locks: bool
) -> None:
    city.add("sweep")
    run = city.run_now("sweep").run
    asks = lambda verb, actor: city.run(permit, verb, by(city, actor), locks=locks)  # noqa: E731
    asks(Verb.KEEP_NOTES, of_run(run))
    city.run(review.cancel, run, ctx=city.context)
    asks(Verb.COMPLETE_RUN, of_run(run))
    with pytest.raises(RunOver, match="canceled"):
        asks(Verb.KEEP_NOTES, of_run(run))
    with pytest.raises(RunOver, match="no run"):
        asks(Verb.EMIT_EVENT, of_run("run_gone"))


def test_a_member_s_token_is_judged_as_it_is_now(peopled: City) -> None:
    made = peopled.run(tokens.creating(bytes), CreateToken("ci", scopes=("read",)), by(peopled, MAX))
    shown = Actor("max", Role.MEMBER, token=made.id, scopes=frozenset({Verb.READ}))
    peopled.run(permit, Verb.READ, by(peopled, shown))
    peopled.run(tokens.revoke_token, RevokeToken(made.id), by(peopled, MAX))
    with pytest.raises(TokenVoid):
        peopled.run(permit, Verb.READ, by(peopled, shown))


def test_what_a_person_changes_is_on_record_and_what_agents_and_runs_do_is_not(city: City) -> None:
    city.add("sweep")
    run, over = city.run_now("sweep").run, "run_gone"
    now = city.clock.now()
    for number in (1, 2):
        row = SessionRow(f"ses_{number}", f"s-{number}", "mayor", None, "tmux", "here", number, now)
        city.run(lambda tx, row=row: tx.sessions.add(row))
    city.run(lambda tx: tx.sessions.end("ses_2", SessionEnd(now, "done")))
    me = owner("ann")

    def audited(actor: Actor, surface: str = "cli", made: Any = runs.CANCEL_RUN) -> bool:
        found: bool = city.read(is_audited, made, None, by(city, actor, surface))
        return found

    assert audited(me)
    assert not audited(system("patrol"))
    assert not audited(of_run(run))
    assert not audited(me, made=operation.read("run.look", Verb.READ, Actor, Actor, lambda *_: None))  # type: ignore[arg-type, return-value]
    assert not audited(changed(me, run=run))
    assert audited(changed(me, run=over))
    assert audited(changed(me, run=run), "api"), "whoever asks over HTTP may name any run"
    assert audited(changed(me, run=run), "web")
    assert audited(changed(me, run=run, token="tok_1"))  # noqa: S106  an id
    assert not audited(changed(me, session="ses_1"))
    assert audited(changed(me, session="ses_1"), "tool")
    assert audited(changed(me, session="ses_2"))
    assert audited(changed(me, session="ses_gone"))
    city.run(review.cancel, run, ctx=city.context)
    assert audited(changed(me, run=run))


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def make(city: City, actor: Actor, name: str = "ci", **keys: Any) -> Any:
    city.advance(seconds=1)
    return city.run(
        tokens.creating(lambda count: bytes([city.clock.now().second]) * count),
        CreateToken(name, **keys),
        by(city, actor),
    )


def test_tokens_are_their_member_s_own_and_an_owner_s_matter(peopled: City) -> None:
    mine, theirs = make(peopled, MAX), make(peopled, ANN)
    given = make(peopled, owner("olga"), member="max")

    def ids(actor: Actor, **keys: str) -> list[str]:
        found = peopled.read(tokens.list_tokens, ListTokens(**keys), by(peopled, actor))
        return [one.id for one in found]

    assert ids(MAX) == ids(MAX, member="max") == [mine.id, given.id]
    assert ids(ANN) == [theirs.id]
    assert ids(owner("olga")) == [mine.id, theirs.id, given.id]
    assert ids(owner("olga"), member="ann") == [theirs.id]
    for actor, keys in ((MAX, {"member": "ann"}), (ANN, {"member": "max"})):
        with pytest.raises(Forbidden):
            ids(actor, **keys)
        with pytest.raises(Forbidden):
            make(peopled, actor, **keys)
    revoke = lambda which, actor: peopled.run(tokens.revoke_token, RevokeToken(which), by(peopled, actor))  # noqa: E731
    for which, actor in ((theirs.id, MAX), (mine.id, ANN), ("tok_gone", owner("olga"))):
        with pytest.raises(TokenUnknown):
            revoke(which, actor)
    assert (revoke(mine.id, MAX).changed, revoke(mine.id, owner("olga")).changed) == (True, False)
    assert revoke(theirs.id, owner("olga")).changed
    assert (given.created_by, given.member, given.token[-4:]) == ("olga", "max", given.ending)


def test_a_token_is_made_for_a_member_alone_and_the_city_s_owner_becomes_one(peopled: City) -> None:
    for actor in (Actor("eve", Role.ADMIN), Actor("eve", Role.OWNER, token="tok_1")):  # noqa: S106  an id
        with pytest.raises(MemberUnknown):
            make(peopled, actor)
    with pytest.raises(MemberUnknown):
        make(peopled, owner("olga"), member="eve")
    assert make(peopled, owner("olga")).member == "olga"
    assert {one.name: one.role for one in peopled.read(lambda tx: tx.members.all())}["olga"] is Role.OWNER


@pytest.mark.parametrize(
    ("kept", "wanted", "told"),
    [
        (None, ("reed",), "did you mean `read`"),
        (frozenset({Verb.READ}), (), "may more than itself"),
        (frozenset({Verb.READ}), ("read", "cancel_run"), "may more than itself"),
        (frozenset({Verb.READ, Verb.CANCEL_RUN}), ("read",), None),
        (None, ("read", "read"), None),
    ],
)
def test_a_token_makes_none_that_may_more_than_itself(
    peopled: City, kept: frozenset[Verb] | None, wanted: tuple[str, ...], told: str | None
) -> None:
    actor = changed(MAX, scopes=kept)
    if told is None:
        assert make(peopled, actor, scopes=wanted).scopes == ("read",)
        return
    with pytest.raises(UsageError, match=told):
        make(peopled, actor, scopes=wanted)


@pytest.mark.parametrize(
    "keys", [{"name": " "}, {"name": "x" * 81}, {"expires": "0s"}, {"expires": "soon"}, {"expires": "-1d"}]
)
def test_a_token_has_a_name_and_an_end_that_is_to_come(peopled: City, keys: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        make(peopled, MAX, **keys)


def test_a_token_holds_no_longer_than_the_one_that_made_it(peopled: City) -> None:
    day, never = make(peopled, MAX, expires="1d"), make(peopled, MAX, expires="never")
    assert never.expires_at is None
    by_day, by_never = changed(MAX, token=day.id), changed(MAX, token=never.id)
    assert make(peopled, by_day, expires="never").expires_at == day.expires_at
    assert make(peopled, by_day, expires="2d").expires_at == day.expires_at
    assert (make(peopled, by_day, expires="1h").expires_at or day.expires_at) < day.expires_at
    assert make(peopled, by_never, expires="never").expires_at is None


# ── signing in at a provider ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email": " Ann@Example.org ", "email_verified": True}, "ann@example.org"),
        ({"email": "ann@example.org"}, None),
        ({"email": "ann@example.org", "email_verified": "true"}, None),
        ({"email": "ann", "email_verified": True}, None),
        ({"email": 7, "email_verified": True}, None),
        ({"email": "an n@example.org", "email_verified": True}, None),
        ({"email": "ann\n@example.org", "email_verified": True}, None),
        ({"email": "a" * 80 + "@example.org", "email_verified": True}, None),
        ({}, None),
    ],
)
def test_a_member_is_named_by_the_address_that_the_provider_verified(claims: dict[str, Any], name: str | None) -> None:
    if name is not None:
        assert signing_in.address_of(claims) == name
        return
    with pytest.raises(Exception, match="no mail address"):
        signing_in.address_of(claims)


def test_who_signs_in_is_a_member_or_has_an_address_of_a_domain_that_joins(peopled: City) -> None:
    def sign_in(address: str, *domains: str) -> Actor:
        unknown = f"{address}-{len(peopled.read(lambda tx: tx.tokens.all()))}"
        args = (address, "https://id.example.org", domains, unknown, by(peopled, system("web")))
        found: Actor = peopled.run(signing_in.sign_in, *args)
        return found

    for domains in ((), ("example.com",), ("xample.org",)):
        with pytest.raises(signing_in.NoMember):
            sign_in("di@example.org", *domains)
    assert peopled.read(lambda tx: len(tx.members.all())) == 2
    joined = sign_in("di@example.org", "example.org")
    assert (joined.name, joined.role) == ("di@example.org", Role.MEMBER)
    assert sign_in("di@example.org").name == "di@example.org"
    known = sign_in("ann")
    assert (known.name, known.role) == ("ann", Role.ADMIN)
    (row,) = peopled.read(lambda tx: tx.tokens.of("ann"))
    assert (row.id, row.expires_at, row.scopes) == (known.token, peopled.clock.now() + signing_in.LASTS, ())


# ── kept views ────────────────────────────────────────────────────────────────────────────────────────────────────────


def save(city: City, actor: Actor, name: str, query: str = "state:failed", **keys: bool) -> None:
    city.run(saved_views.save_view, SaveView(name, query, **keys), by(city, actor))


def views(city: City, actor: Actor) -> list[tuple[str, str, bool]]:
    found = city.read(saved_views.list_views, ListViews(), by(city, actor))
    return [(one.owner, one.name, one.first) for one in found]


def test_a_view_is_seen_and_forgotten_by_who_keeps_it_and_seen_by_all_where_it_is_shared(city: City) -> None:
    save(city, ANN, "mine")
    save(city, ANN, "ours", shared=True, first=True)
    save(city, MAX, "mine", first=True)
    assert views(city, ANN) == [("ann", "mine", False), ("ann", "ours", True)]
    assert views(city, MAX) == [("ann", "ours", True), ("max", "mine", True)]
    save(city, ANN, "mine", first=True)
    assert views(city, ANN) == [("ann", "mine", True), ("ann", "ours", False)], "one of hers is first"
    assert views(city, MAX) == [("ann", "ours", False), ("max", "mine", True)]
    with pytest.raises(NotFound):
        city.run(saved_views.delete_view, DeleteView("ours"), by(city, MAX))
    city.run(saved_views.delete_view, DeleteView("mine"), by(city, ANN))
    assert views(city, MAX) == [("ann", "ours", False), ("max", "mine", True)]


@pytest.mark.parametrize(
    ("name", "query"),
    [("", "state:failed"), ("a/b", "x"), ("a" * 81, "x"), ("a\n", "x\ny"), ("a", " "), ("a", "state:")],
)
def test_a_view_without_a_name_or_a_filter_is_refused(city: City, name: str, query: str) -> None:
    with pytest.raises((UsageError, QueryWrong)):
        save(city, ANN, "a\tb" if name == "a\n" else name, query)
    assert views(city, ANN) == []


def test_so_many_views_are_kept_by_each_and_one_more_only_in_place_of_another(city: City) -> None:
    for number in range(MOST):
        save(city, ANN, f"v{number}")
    with pytest.raises(TooManyViews):
        save(city, ANN, "more")
    save(city, ANN, "v0", "state:succeeded")
    save(city, MAX, "more")
    assert len(views(city, ANN)) == MOST

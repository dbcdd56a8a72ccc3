"""When a token was last used, and who holds it: asked with every request, noted at most once a minute."""

from datetime import timedelta

import pytest
from automation_city import City

from lamplighter.domain.access import Forbidden, Role, TokenVoid, Verb
from lamplighter.domain.tokens import token_hash
from lamplighter.kit.records import changed
from lamplighter.services import token_checks
from lamplighter.services.token_checks import TOUCHED_EVERY
from lamplighter.store.members import MemberRow
from lamplighter.store.tokens import TokenRow

TOKEN = "lamp_abc"  # noqa: S105  made up


@pytest.fixture
def held(city: City) -> City:
    now = city.clock.now()
    city.run(lambda tx: tx.members.add(MemberRow("ann", Role.MEMBER, now, "tester")))
    lasts = now + timedelta(hours=1)
    row = TokenRow("tok_1", "ann", "ci", token_hash(TOKEN), "_abc", ("read",), now, "ann", lasts)
    city.run(lambda tx: tx.tokens.add(row))
    return city


def is_due(city: City) -> bool:
    by_hash, by_id = (
        city.read(token_checks.find, TOKEN, city.clock.now()), city.read(token_checks.holder, "tok_1", city.clock.now())
    )  # fmt: skip
    assert by_hash == by_id
    return bool(by_hash[1])


def test_a_use_is_noted_at_first_and_then_once_a_minute(held: City) -> None:
    assert is_due(held)
    held.run(token_checks.touch, "tok_1", held.clock.now())
    assert not is_due(held)
    held.clock.advance(TOUCHED_EVERY - timedelta(seconds=1))
    assert not is_due(held)
    held.clock.advance(timedelta(seconds=1))
    assert is_due(held)
    held.run(token_checks.touch, "tok_1", held.clock.now())
    (row,) = held.read(lambda tx: tx.tokens.all())
    assert row.used_at == held.clock.now()
    held.run(token_checks.touch, "tok_1", held.clock.now() - timedelta(seconds=5))
    assert held.read(lambda tx: tx.tokens.all()) == [row], "an earlier use that is noted later changes nothing"


def test_a_token_has_its_member_s_role_and_its_own_rights_until_its_end(held: City) -> None:
    actor, _ = held.read(token_checks.find, TOKEN, held.clock.now())
    assert (actor.name, actor.role, actor.token, actor.scopes) == ("ann", Role.MEMBER, "tok_1", {Verb.READ})
    assert held.read(token_checks.find, "lamp_other", held.clock.now()) is None
    held.clock.advance(timedelta(hours=1) - timedelta(microseconds=1))
    assert held.read(token_checks.find, TOKEN, held.clock.now()) is not None
    held.clock.advance(timedelta(microseconds=1))
    with pytest.raises(TokenVoid, match="has ended"):
        held.read(token_checks.find, TOKEN, held.clock.now())


def test_what_was_revoked_or_has_lost_its_member_is_void_and_a_right_it_lacks_is_refused(held: City) -> None:
    actor, _ = held.read(token_checks.find, TOKEN, held.clock.now())
    ctx = changed(held.context, actor=actor)
    held.read(token_checks.still_holds, Verb.READ, ctx)
    with pytest.raises(Forbidden):
        held.read(token_checks.still_holds, Verb.CANCEL_RUN, ctx)
    assert held.run(lambda tx: tx.tokens.revoke("tok_1", held.clock.now()))
    assert not held.run(lambda tx: tx.tokens.revoke("tok_1", held.clock.now())), "it is revoked once"
    with pytest.raises(TokenVoid, match="revoked"):
        held.read(token_checks.still_holds, Verb.READ, ctx)
    with pytest.raises(TokenVoid, match="gone with its member"):
        held.read(token_checks.still_holds, Verb.READ, changed(ctx, actor=changed(actor, token="tok_2")))  # noqa: S106  an id
    with pytest.raises(TokenVoid, match="gone with its member"):
        held.read(token_checks.holder, "tok_2", held.clock.now())

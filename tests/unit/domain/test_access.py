import pytest

from lamplighter.domain.access import Actor, Forbidden, Role, Verb, of_run, owner, require, require_own_run
from lamplighter.domain.tokens import TokenBook, run_of_token, run_token

KEY = bytes(range(32))
RUN = "run_" + "0" * 26


def test_a_token_names_its_run_and_is_the_same_each_time() -> None:
    token = run_token(KEY, RUN)
    assert run_token(KEY, RUN) == token
    assert run_of_token(KEY, token) == RUN
    assert RUN in token


def test_a_token_of_another_key_run_or_spelling_is_none() -> None:
    token = run_token(KEY, RUN)
    other = run_token(KEY, "run_1")
    for wrong in (
        run_token(bytes(32), RUN), f"{token} ", token.upper(), token[:-1], token + "0", "", "lrt_", f"lrt_{RUN}.",
        token.replace(RUN, "run_1"), f"lrt_{RUN}.{other.rpartition('.')[2]}", f"{token}\n", "é", "\ud83d",
    ):  # fmt: skip
        assert run_of_token(KEY, wrong) is None


def test_a_key_that_is_too_short_is_a_bug() -> None:
    with pytest.raises(ValueError, match="too short"):
        run_token(b"short", RUN)


def test_a_run_may_complete_itself_emit_events_keep_notes_and_nothing_else() -> None:
    caller = of_run(RUN)
    require_own_run(caller, RUN)
    require(caller, Verb.EMIT_EVENT)
    require(caller, Verb.KEEP_NOTES)
    for verb in set(Verb) - {Verb.COMPLETE_RUN, Verb.EMIT_EVENT, Verb.KEEP_NOTES}:
        with pytest.raises(Forbidden):
            require(caller, verb)
    with pytest.raises(Forbidden):
        require_own_run(caller, "run_1")


def test_a_member_works_an_admin_also_arranges_and_an_owner_may_everything() -> None:
    may = {role: {verb for verb in Verb if Actor("ada", role).may(verb)} for role in Role}
    assert may[Role.MEMBER] < may[Role.ADMIN] <= may[Role.OWNER] == set(Verb)
    assert Verb.CANCEL_RUN in may[Role.MEMBER]
    assert not may[Role.MEMBER] & {Verb.WRITE_AUTOMATIONS, Verb.CONTROL_AGENTS, Verb.PAUSE_CITY, Verb.COMPLETE_RUN}


def test_whoever_works_inside_a_run_completes_that_run_only() -> None:
    require_own_run(owner("ada"), RUN)
    require_own_run(owner("amber", RUN), RUN)
    with pytest.raises(Forbidden):
        require_own_run(owner("amber", RUN), "run_1")


def test_a_city_knows_its_owner_and_its_runs() -> None:
    book = TokenBook(KEY, "lot_" + "x" * 40)
    known = book.actor("lot_" + "x" * 40)
    assert known is not None
    assert all(known.may(verb) for verb in Verb)
    found = book.actor(run_token(KEY, RUN))
    assert found == of_run(RUN)
    for wrong in ("", "lot_", "\ud83d", "lot_" + "x" * 39):
        assert book.actor(wrong) is None
    assert "xxx" not in repr(book)

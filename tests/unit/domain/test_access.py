import pytest

from lamplighter.domain.access import (
    Forbidden,
    TokenBook,
    Verb,
    of_run,
    owner,
    require,
    require_own_run,
    run_of_token,
    run_token,
)

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


def test_a_run_may_complete_itself_and_emit_events_and_nothing_else() -> None:
    caller = of_run(RUN)
    require_own_run(caller, RUN)
    require(caller, Verb.EMIT_EVENT)
    for verb in (Verb.READ, Verb.WRITE):
        with pytest.raises(Forbidden):
            require(caller, verb)
    with pytest.raises(Forbidden):
        require_own_run(caller, "run_1")


def test_whoever_works_inside_a_run_completes_that_run_only() -> None:
    require_own_run(owner("ada"), RUN)
    require_own_run(owner("amber", RUN), RUN)
    with pytest.raises(Forbidden):
        require_own_run(owner("amber", RUN), "run_1")


def test_a_city_knows_its_owner_and_its_runs() -> None:
    book = TokenBook(KEY, "lot_" + "x" * 40)
    known = book.caller("lot_" + "x" * 40)
    assert known is not None
    assert known.verbs == frozenset(Verb)
    found = book.caller(run_token(KEY, RUN))
    assert found == of_run(RUN)
    for wrong in ("", "lot_", "\ud83d", "lot_" + "x" * 39):
        assert book.caller(wrong) is None
    assert "xxx" not in repr(book)

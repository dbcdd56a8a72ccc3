"""What becomes of runs whose login does not work: a table of cases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lamplighter.domain.sessions.logins import (
    CHECK_EVERY,
    LONGEST_TRY,
    TRY_EVERY,
    Decision,
    GiveUp,
    Go,
    Login,
    LoginKey,
    LoginState,
    Wait,
    Waiting,
    decide,
    in_the_way,
    key_of,
)
from lamplighter.domain.sessions.presets.catalogue import PRESETS

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
KEY = LoginKey("here", "claude", "/home/ada/.claude")
REFUSED = Login(KEY, LoginState.REFUSED, NOW - timedelta(minutes=5), marks="a", looked_at=NOW - timedelta(minutes=5))
LIMITED = Login(KEY, LoginState.LIMITED, NOW, until=NOW + timedelta(hours=2))
PATIENT = Waiting("run_1", NOW + timedelta(hours=12))
DONE_WAITING = Waiting("run_1", NOW)
BY_HAND = Waiting("run_1", NOW, by_hand=True)
TRIED = replace(REFUSED, trying="run_2", trying_since=NOW - timedelta(minutes=1))
OWN_TRY, OLD_TRY = replace(TRIED, trying="run_1"), replace(TRIED, trying_since=NOW - LONGEST_TRY)
AGAIN = replace(REFUSED, looked_at=None)

CASES: dict[str, tuple[Login | None, str, Waiting, Decision]] = {
    "nothing in the way": (None, "a", PATIENT, Go()),
    "refused, and nothing changed": (REFUSED, "a", PATIENT, Wait(NOW + CHECK_EVERY, REFUSED)),
    "refused, and somebody signed in": (REFUSED, "b", PATIENT, Go(REFUSED)),
    "refused, and another run tries it": (TRIED, "b", PATIENT, Wait(NOW + CHECK_EVERY, TRIED)),
    "refused, and it is the run that tries": (OWN_TRY, "b", PATIENT, Go(OWN_TRY)),
    "refused, and who tried it never ended": (OLD_TRY, "b", PATIENT, Go(OLD_TRY)),
    "refused long ago": (
        replace(REFUSED, looked_at=NOW - TRY_EVERY), "a", PATIENT, Go(replace(REFUSED, looked_at=NOW - TRY_EVERY)),
    ),
    "refused, and to be looked at again": (AGAIN, "a", PATIENT, Go(AGAIN)),
    "refused, and waited long enough": (REFUSED, "a", DONE_WAITING, GiveUp(REFUSED)),
    "refused, and may wait a little": (
        REFUSED, "a", Waiting("r", NOW + timedelta(seconds=5)), Wait(NOW + timedelta(seconds=5), REFUSED),
    ),
    "refused, and a person asks": (REFUSED, "a", BY_HAND, Go(REFUSED)),
    "limited": (LIMITED, "", PATIENT, Wait(NOW + timedelta(hours=2), LIMITED)),
    "limited for longer than it may wait": (LIMITED, "", DONE_WAITING, GiveUp(LIMITED)),
    "limited, and a person asks": (LIMITED, "", BY_HAND, Go()),
    "limited until now": (replace(LIMITED, until=NOW), "", PATIENT, Go()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_run_goes_waits_or_is_given_up(case: str) -> None:
    held, marks, waiting, decision = CASES[case]
    assert decide(held, marks, waiting, NOW) == decision


def test_a_limit_is_one_of_its_model_and_a_refusal_of_all() -> None:
    small = replace(LIMITED, model="small")
    assert in_the_way((small,), KEY, "small") == small
    assert in_the_way((small,), KEY, "large") is None
    assert in_the_way((small, REFUSED), KEY, "large") == REFUSED
    assert in_the_way((replace(REFUSED, state=LoginState.WORKS),), KEY, "") is None
    assert in_the_way((REFUSED,), replace(KEY, home="/home/bob/.claude"), "") is None


def test_a_login_is_that_of_a_home_and_of_the_keys_in_the_environment() -> None:
    claude = PRESETS["claude"]
    assert key_of(claude, {"HOME": "/home/ada"}, "here") == KEY
    own = key_of(claude, {"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/srv/login/"}, "here")
    assert own == replace(KEY, home="/srv/login")
    keys = [key_of(claude, {"HOME": "/h", "ANTHROPIC_API_KEY": key}, "here") for key in ("one", "two", "one")]
    assert keys[0] == keys[2] != keys[1]
    assert "one" not in keys[0].account
    assert key_of(PRESETS["goose"], {"HOME": "/h"}, "here").home == "/h/.config/goose"

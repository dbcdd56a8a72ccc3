"""Tokens of members: their form, their checksum, and what is kept of them."""

import re
import secrets

from hypothesis import given
from hypothesis import strategies as st

from lamplighter.domain.tokens import is_token, new_token, token_hash


def test_a_token_has_a_prefix_thirty_letters_and_a_checksum() -> None:
    token = new_token(secrets.token_bytes)
    assert re.fullmatch(r"lamp_[0-9A-Za-z]{36}", token)
    assert is_token(token)
    assert new_token(secrets.token_bytes) != token


@given(chance=st.binary(min_size=30, max_size=30), place=st.integers(5, 40), letter=st.sampled_from("0Az9"))
def test_one_wrong_letter_is_told_without_a_store(chance: bytes, place: int, letter: str) -> None:
    token = new_token(lambda _: chance)
    wrong = token[:place] + letter + token[place + 1 :]
    assert is_token(wrong) == (wrong == token)


def test_other_texts_are_no_tokens() -> None:
    for text in ("", "lamp_", "lamp_" + "a" * 36, "lot_abc", new_token(secrets.token_bytes) + "x", "lamp_é" + "a" * 35):
        assert not is_token(text)


def test_the_hash_tells_tokens_apart_and_does_not_contain_them() -> None:
    one, two = new_token(secrets.token_bytes), new_token(secrets.token_bytes)
    assert token_hash(one) != token_hash(two)
    assert one[5:15] not in token_hash(one)

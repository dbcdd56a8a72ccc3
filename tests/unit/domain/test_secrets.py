"""Which variables refer to secrets, and which secrets a program can be given."""

from datetime import UTC, datetime

import pytest

from lamplighter.domain.secrets import SecretUnknown, references
from lamplighter.services.secret_values import filled
from lamplighter.store.secrets import SecretRow

AT = datetime(2026, 3, 1, tzinfo=UTC)


def row(name: str) -> SecretRow:
    return SecretRow(name, "key", "nonce", f"value of {name}", AT, "ada", AT, "ada")


def test_variables_of_the_product_refer_to_no_secret_because_agents_write_some_of_them() -> None:
    env = {"KEY": "secret:door", "LAMP_CURSOR": "secret:door", "GC_AGENT": "secret:door", "PLAIN": "x"}
    assert references(env) == {"KEY": "door"}
    assert filled(env, [row("door")], lambda one: one.text)["LAMP_CURSOR"] == "secret:door"


def test_the_secret_of_a_connection_is_given_to_no_program_and_not_told_of() -> None:
    rows = [row("connection/shop/current"), row("door")]
    with pytest.raises(SecretUnknown) as refused:
        filled({"KEY": "secret:connection/shop/current"}, rows, lambda one: one.text)
    assert "did you mean" not in refused.value.message

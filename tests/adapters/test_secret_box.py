"""Secrets are opened by their key, for their city and name, and by nothing else."""

import json
from base64 import b64encode, encodebytes, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from lamplighter.adapters.files.secret_box import KEY_FILE, KeyedBox
from lamplighter.domain.secrets import KeyUnusable, SecretLocked, masking
from lamplighter.kit.errors import Unavailable

ONE, OTHER = "11" * 32, "22" * 32


def box(runtime: Path, city: str = "cty_a", **env: str) -> KeyedBox:
    return KeyedBox(runtime, env, city)


def test_a_value_comes_back_and_its_row_tells_nothing_of_it(runtime: Path) -> None:
    sealed = box(runtime).seal("API", "open sesame", ())
    assert box(runtime).open("API", sealed) == "open sesame"
    assert b"open sesame".hex() not in sealed.text
    assert box(runtime).seal("API", "open sesame", ()).text != sealed.text
    assert (runtime / KEY_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("city", "name"), [("cty_a", "OTHER"), ("cty_b", "API")])
def test_a_row_under_another_name_or_city_is_refused(runtime: Path, city: str, name: str) -> None:
    sealed = box(runtime).seal("API", "open sesame", ())
    with pytest.raises(SecretLocked, match="another name or city"):
        box(runtime, city).open(name, sealed)


def test_an_old_key_still_opens_after_a_rotation(runtime: Path) -> None:
    before = box(runtime).seal("API", "open sesame", ())
    box(runtime).renew_key({before.key_id})
    after = box(runtime).seal("API", "open sesame", ())
    assert after.key_id != before.key_id
    assert [box(runtime).open("API", one) for one in (before, after)] == ["open sesame"] * 2


def test_without_the_key_it_is_told_which_one_is_missing(runtime: Path) -> None:
    sealed = box(runtime).seal("API", "open sesame", ())
    (runtime / KEY_FILE).unlink()
    with pytest.raises(SecretLocked, match=rf"its key \({sealed.key_id}\) is not here"):
        box(runtime).open("API", sealed)
    assert not (runtime / KEY_FILE).exists()


def test_the_key_of_the_environment_comes_first_and_is_rotated_there(runtime: Path) -> None:
    sealed = box(runtime, LAMP_SECRET_KEY=ONE).seal("API", "open sesame", ())
    assert not (runtime / KEY_FILE).exists()
    with pytest.raises(KeyUnusable, match="one key only"):
        box(runtime, LAMP_SECRET_KEY=ONE).renew_key(())
    both = box(runtime, LAMP_SECRET_KEY=f"{OTHER},{ONE}")
    assert both.open("API", sealed) == "open sesame"
    assert both.renew_key({sealed.key_id}) == both.seal("API", "x", ()).key_id != sealed.key_id


def test_no_second_key_is_made_where_the_one_in_use_is_missing(runtime: Path) -> None:
    sealed = box(runtime, LAMP_SECRET_KEY=ONE).seal("API", "open sesame", ())
    for make in (
        lambda: box(runtime).seal("B", "more", {sealed.key_id}),
        lambda: box(runtime).renew_key({sealed.key_id}),
    ):
        with pytest.raises(KeyUnusable, match=rf"secrets \({sealed.key_id}\) is not here") as refused:
            make()
        assert "LAMP_SECRET_KEY" in refused.value.hint
        assert not (runtime / KEY_FILE).exists()


def test_a_key_that_is_none_and_a_file_that_others_can_read_are_refused(runtime: Path) -> None:
    with pytest.raises(KeyUnusable, match="is not a key"):
        box(runtime, LAMP_SECRET_KEY="short").seal("API", "x", ())  # noqa: S106  it is none
    box(runtime).seal("API", "x", ())
    (runtime / KEY_FILE).chmod(0o644)
    with pytest.raises(Unavailable, match="can be read by others"):
        box(runtime).seal("API", "x", ())


def test_values_are_masked_whole_and_line_by_line_and_short_ones_are_left() -> None:
    mask = masking(["open sesame", "first line\nsecond line", "abc"])
    assert mask("say open sesame, abc: second line") == "say •••, abc: •••"
    assert masking([])("as it is") == "as it is"


VALUE = 'p/ss "w\u00f6rd"\\+=\ttail'


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(VALUE),
        json.dumps(VALUE, ensure_ascii=False),
        json.dumps(VALUE).replace("/", "\\/"),
        json.dumps(json.dumps({"key": VALUE})),
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        quote(VALUE, safe="").replace("%C3%B6", "%c3%b6").replace("%2F", "%2f").replace("%5C", "%5c")
        .replace("%2B", "%2b").replace("%3D", "%3d"),
        b64encode(VALUE.encode()).decode(),
        b64encode(f"{VALUE}\n".encode()).decode(),
        urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    ],
    ids=["json", "json text", "slashes", "json in json", "url", "url whole", "form", "small digits", "base64", "echo",
         "url base64"],
)  # fmt: skip
def test_escaped_forms_are_masked_and_what_is_around_them_stays(written: str) -> None:
    told = masking([VALUE, "other secret"])(f"before {written} after")
    assert told.startswith("before ")
    assert told.endswith(" after")
    assert "•••" in told
    assert not [part for part in ("rd", "tail", "dGFpb", "p/ss", "p%2") if part in told]


def test_a_long_value_in_base64_is_masked_line_by_line() -> None:
    value = "".join(chr(33 + number % 90) for number in range(300))
    told = masking([value])(encodebytes(value.encode()).decode())
    assert set(told.split()) == {"•••"}

"""`lamp mail` with the city's own beads, with a real script, and with what fails."""

import json
import sys
from pathlib import Path

import pytest
from lamp_program import here, lamp, one_sentence

SCRIPT = f'''#!{sys.executable}
"""Letters in a file."""
import json, sys
from pathlib import Path

kept = Path("letters.json")
letters = json.loads(kept.read_text()) if kept.exists() else []
operation, *rest = sys.argv[1:]
with Path("calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")


def one(name):
    for letter in letters:
        if letter["id"] == name:
            return letter
    sys.exit(f"letter {{name}} not found")


def unread(name):
    return [letter for letter in letters if letter["to"] == name and not letter["done"]]


if operation == "send":
    letter = json.load(sys.stdin) | {{"id": f"L{{len(letters) + 1}}", "to": rest[0], "done": False}}
    letters.append(letter | {{"created_at": "2026-03-01T10:00:00Z"}})
    print(json.dumps({{"id": letter["id"]}}))
elif operation in ("inbox", "check"):
    print(json.dumps(unread(rest[0])))
elif operation == "read":
    one(rest[0])["done"] = True
    print(json.dumps(one(rest[0])))
elif operation == "archive":
    if one(rest[0])["done"]:
        sys.exit("already archived")
    one(rest[0])["done"] = True
else:
    sys.exit(2)
kept.write_text(json.dumps(letters))
'''


def a_city(tmp_path: Path, provider: str) -> Path:
    root = tmp_path / "town"
    assert lamp("init", str(root), cwd=tmp_path).code == 0
    script = root / "post"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    with (root / "city.toml").open("a") as file:
        file.write(f'\n[mail]\nprovider = "{provider}"\n\n[[agents]]\nname = "mayor"\nstart_command = "true"\n')
    return root


@pytest.mark.parametrize("provider", ["", "exec:./post", "exec:post"])
def test_a_letter_is_sent_found_read_and_gone(tmp_path: Path, provider: str) -> None:
    root = a_city(tmp_path, provider)
    at = ("--city", str(root))
    assert here("mail", "check", "mayor", *at).code == 1
    sent = here("mail", "send", "mayor", "be", "quick\nand quiet", "--json", *at)
    assert sent.code == 0, sent
    (letter,) = sent.json["sent"]
    expected = {"from": "human", "to": "mayor", "title": "be quick", "body": "be quick\nand quiet"}
    assert letter | expected == letter
    assert here("mail", "check", "mayor", *at).code == 0
    assert letter["id"] in here("mail", "check", "mayor", "--inject", *at).out
    (found,) = here("mail", "inbox", "mayor", "--json", *at).json
    assert found | expected == found
    assert found["created_at"]
    assert "and quiet" in here("mail", "read", letter["id"], *at).out
    assert here("mail", "inbox", "mayor", "--json", *at).json == []
    assert here("mail", "archive", letter["id"], *at).code == 4
    assert here("mail", "read", "nothing", *at).code == 3
    events = here("event", "list", "--json", *at).json
    told = [(one["type"], one["subject"]) for one in events if one["type"].startswith("mail.")]
    assert sorted(told) == [("mail.read", letter["id"]), ("mail.sent", letter["id"])]


def test_a_letter_is_archived_unread(tmp_path: Path) -> None:
    at = ("--city", str(a_city(tmp_path, "exec:./post")))
    here("mail", "send", "human", "later", *at)
    assert here("mail", "archive", "L1", *at).code == 0
    assert here("mail", "inbox", *at).out == "No mail.\n"
    assert here("mail", "archive", "L9", *at).code == 3


def test_the_script_is_asked_to_be_ready_once_a_command(tmp_path: Path) -> None:
    root = a_city(tmp_path, "exec:./post")
    here("mail", "send", "--all", "hello", "--from", "ada", "--city", str(root))
    assert (root / "calls").read_text().splitlines() == ["ensure-running", "send mayor"]
    assert json.loads((root / "letters.json").read_text())[0]["from"] == "ada"


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        ("exit 1", 1, "exit code 1"),
        ("echo broken >&2; exit 7", 1, "broken"),
        ("echo nonsense", 1, "JSON"),
        ("echo '{}'", 1, "list of messages"),
        ("echo '[{}]'", 1, "no message"),
        ("echo '[3]'", 1, "no message"),
        ("""echo '[{"id":"a","from":"b","to":"c","body":"d","created_at":"soon"}]'""", 1, "created_at"),
        ("exit 2", 1, "does not know `inbox`"),
    ],
)
def test_a_script_that_is_wrong_is_told(tmp_path: Path, body: str, code: int, word: str) -> None:
    root = a_city(tmp_path, "exec:./post")
    (root / "post").write_text(f"#!/bin/sh\n[ $1 = ensure-running ] && exit 2\n{body}\n")
    assert word in one_sentence(here("mail", "inbox", "--city", str(root)), code)
    assert here("mail", "check", "--inject", "--city", str(root)).code == 0, "a hook never fails its program"


def test_a_script_that_is_not_there_is_told_with_the_setting(tmp_path: Path) -> None:
    root = a_city(tmp_path, "exec:./nowhere")
    assert "[mail] provider" in one_sentence(here("mail", "inbox", "--city", str(root)), 5)


def test_fake_keeps_nothing_and_fail_takes_nothing(tmp_path: Path) -> None:
    root = a_city(tmp_path, "fake")
    at = ("--city", str(root))
    assert here("mail", "send", "mayor", "hello", *at).code == 0
    assert here("mail", "inbox", "mayor", "--json", *at).json == []
    assert here("mail", "read", "x", *at).code == here("mail", "archive", "x", *at).code == 3
    (root / "city.toml").write_text((root / "city.toml").read_text().replace('"fake"', '"fail"'))
    for command in (("send", "mayor", "x"), ("inbox",), ("check",), ("read", "x"), ("archive", "x")):
        assert here("mail", *command, *at).code == 5


def test_the_environment_names_another_provider_and_a_wrong_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = a_city(tmp_path, "")
    monkeypatch.setenv("GC_MAIL", "fail")
    assert here("mail", "inbox", "--city", str(root)).code == 5
    monkeypatch.setenv("GC_MAIL", "pigeon")
    told = one_sentence(here("mail", "inbox", "--city", str(root)), 2)
    assert "`pigeon` is not one of" in told


def test_an_empty_letter_is_refused(tmp_path: Path) -> None:
    assert here("mail", "send", "human", "  ", "--city", str(a_city(tmp_path, ""))).code == 2


@pytest.mark.parametrize("provider", ["", "exec:./post"])
def test_an_inbox_that_is_cut_says_so_and_check_counts_all(
    tmp_path: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = a_city(tmp_path, provider)
    for number in range(3):
        assert here("mail", "send", "--city", str(root), "mayor", f"letter {number}").code == 0
    cut = here("mail", "inbox", "mayor", "--limit", "2", "--city", str(root))
    assert ("letter 0" in cut.out, "letter 2" in cut.out) == (False, True)
    assert "the newest 2; `--limit" in cut.err
    whole = here("mail", "inbox", "mayor", "--limit", "4", "--city", str(root))
    assert ("letter 0" in whole.out, whole.err) == (True, "")
    monkeypatch.setattr("lamplighter.services.mail.SHOWN", 2)
    assert here("mail", "check", "mayor", "--city", str(root)).out == "3 unread.\n"
    told = here("mail", "check", "mayor", "--inject", "--city", str(root)).out
    assert "You have 2 unread messages or more; these are the newest:" in told
    assert "letter 0" not in told

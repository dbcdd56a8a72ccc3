"""The parts of the tmux provider that need no server."""

import subprocess
from pathlib import Path

from lamplighter.adapters.sessions.tmux.panes import FORMAT, LAUNCH, parse_panes, write_launch
from lamplighter.adapters.sessions.tmux.words import session_word, socket_path
from lamplighter.domain.sessions.model import SessionName, SessionSpec


def row(**values: str) -> str:
    defaults = {"pane_id": "%1", "@lamp_pane": "%1", "@lamp_name": "a", "@lamp_id": "ses_1", "@lamp_city": "c",
                "pane_pid": "77", "pane_dead": "0", "session_activity": "10", "window_activity": "20",
                "session_created": "5", "session_attached": "0", "pane_current_command": "sh"}  # fmt: skip
    fields = [field.strip("#{}") for field in FORMAT.split("\t")]
    return "\t".join((defaults | values).get(field, "") for field in fields)


def test_only_the_panes_of_this_city_that_sessions_were_started_with_count() -> None:
    text = "\n".join([row(), row(pane_id="%2"), row(**{"@lamp_city": "other"}), "rubbish", ""])
    (pane,) = parse_panes(text, "c")
    assert (pane.name, pane.pid, pane.activity.timestamp(), pane.attached) == ("a", 77, 20, False)


def test_the_end_of_a_pane_is_its_status_or_its_signal() -> None:
    (by_status,) = parse_panes(row(pane_dead="1", pane_dead_status="3"), "c")
    (by_signal,) = parse_panes(row(pane_dead="1", pane_dead_signal="9"), "c")
    (by_name,) = parse_panes(row(pane_dead="1", pane_dead_signal="TERM"), "c")
    (unknown,) = parse_panes(row(pane_dead="1"), "c")
    assert [one.exit_status for one in (by_status, by_signal, by_name, unknown)] == [3, 137, 143, None]


def test_names_that_tmux_would_take_for_targets_are_coded_apart() -> None:
    words = {session_word(SessionName(name)) for name in ("a.b", "a-b", "a_b", "a:b", "a_2e_b")}
    assert len(words) == 5
    assert not any(sign in word for word in words for sign in ".:")


def test_a_socket_stays_in_the_city_while_its_path_is_short_enough(tmp_path: Path) -> None:
    assert socket_path(Path("/city/.gc"), "c", tmp_path) == Path("/city/.gc/tmux.sock")
    long = Path("/" + "deep/" * 30)
    far = socket_path(long, "c", Path("/run"))
    assert len(str(far)) < 100
    assert far != socket_path(long, "d", Path("/run"))


def test_the_launch_script_passes_words_and_environment_untouched(tmp_path: Path) -> None:
    words = ("printf", "%s|", "it's", "$HOME", "`id`", "two\nlines", ";", "ünï")
    spec = SessionSpec(SessionName("a"), words, str(tmp_path), takes_input=False)
    write_launch(tmp_path, spec, {"PATH": "/usr/bin:/bin", "SECRET": "a'b\"c$d\ne"}, {"HOME": "/nowhere"})
    told = subprocess.run(
        ["/bin/sh", str(tmp_path / LAUNCH)], capture_output=True, text=True, check=True, env={"HOME": "/nowhere"}
    )
    assert told.stdout == "it's|$HOME|`id`|two\nlines|;|ünï|"
    assert (tmp_path / LAUNCH).stat().st_mode & 0o077 == 0

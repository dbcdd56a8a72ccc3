"""A mark that something is open lasts as long as the program that a process has become."""

import subprocess
import sys
from pathlib import Path

import pytest

from lamplighter.adapters.files.open_marks import held, is_held

BECOMES = """
import os, sys
from pathlib import Path
from lamplighter.adapters.files.open_marks import held
assert held(Path(sys.argv[1])) is not None
os.execvp("sh", ["sh", "-c", sys.argv[2]])
"""
CLOSES_ALL = 'for fd in /proc/self/fd/*; do n=${fd##*/}; [ $n -gt 2 ] && eval "exec $n>&-"; done; '


@pytest.mark.parametrize("before", ["", CLOSES_ALL], ids=["inherits", "closes what it inherits"])
def test_a_program_keeps_the_mark_of_the_process_that_became_it(before: str, tmp_path: Path) -> None:
    mark = tmp_path / "open.lock"
    assert not is_held(mark)
    with subprocess.Popen(
        [sys.executable, "-c", BECOMES, str(mark), f"{before}echo open; read -r line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"open\n"
        assert is_held(mark)
        assert held(mark) is None
        program.kill()
        program.wait(timeout=180)
    assert not is_held(mark)
    assert held(mark) is not None

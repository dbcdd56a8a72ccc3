"""The limit of descriptors: raised for this process, the old one for its children, a reserve for what must go on."""

import subprocess
import sys

import pytest

from lamplighter.kit import descriptors

RAISED = """
import subprocess
from lamplighter.kit import descriptors
descriptors.raise_limit()
descriptors.raise_limit()
asked = descriptors.limited(["/bin/sh", "-c", 'ulimit -S -n; ulimit -H -n; echo "$1"', "sh", "a b"])
children = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\\n")
print([descriptors.limit(), descriptors.for_children(), *children[:3]])
"""

AFTERWARDS = """
import subprocess
from lamplighter.kit import descriptors
descriptors.raise_limit()
child = subprocess.Popen(["/bin/sh", "-c", "read go; ulimit -S -n"], stdin=-1, stdout=-1, text=True)
descriptors.limit_child(child.pid)
print(child.communicate("go\\n")[0].strip())
"""


def in_a_process(limits: str, program: str = RAISED) -> str:
    script = f'{limits}; exec "$0" -c "$1"'
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable, program], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux changes the limits of another process")
def test_a_child_that_is_started_already_gets_the_old_limit_too() -> None:
    assert in_a_process("ulimit -Sn 200; ulimit -Hn 400", AFTERWARDS) == "200"


def test_the_soft_limit_is_raised_and_children_get_the_old_one() -> None:
    assert in_a_process("ulimit -Sn 200; ulimit -Hn 400") == "[400, 200, '200', '400', 'a b']"


def test_a_process_at_its_hard_limit_leaves_everything_as_it_is() -> None:
    assert in_a_process("ulimit -n 400") == "[400, None, '400', '400', 'a b']"


@pytest.mark.parametrize(("most", "kept"), [(64, 16), (256, 64), (1024, 64)])
def test_the_highest_numbers_are_the_reserve(monkeypatch: pytest.MonkeyPatch, most: int, kept: int) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _which: (most, most))
    assert descriptors.reserve() == kept
    assert not descriptors.in_reserve(most - kept - 1)
    assert descriptors.in_reserve(most - kept)
    assert not descriptors.too_many_for_a_watch(most - 2 * kept - 1)
    assert descriptors.too_many_for_a_watch(most - 2 * kept)

"""The one way to run a child process: awaited and waited for, each case both ways."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lamplighter.adapters.processes.child import (
    Call,
    Ended,
    NotStarted,
    Output,
    TookTooLong,
    TooMuchOutput,
    run_child,
    run_child_here,
)
from lamplighter.adapters.processes.table import ENV_CHILD_ID, all_processes, identity_of
from lamplighter.adapters.processes.watch import all_ended
from lamplighter.testing.few_descriptors import only

WITHIN = 120
LONG = timedelta(seconds=WITHIN)
ENV = {"PATH": os.defpath}
Run = Callable[[Call], Awaitable[Ended]]
MARK = "LAMP_SESSION_ID"
"""Of what a test starts, so that what is left of it can be counted."""


async def awaited(call: Call) -> Ended:
    async with asyncio.timeout(WITHIN):
        return await run_child(call)


async def waited_for(call: Call) -> Ended:
    async with asyncio.timeout(WITHIN):
        return await asyncio.to_thread(run_child_here, call)


@pytest.fixture(params=[awaited, waited_for])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


class Shell:
    """Calls of a shell whose processes can be told from all others."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mark = f"ses_{os.urandom(6).hex()}"

    def __call__(self, line: str) -> Call:
        return Call(("/bin/sh", "-c", line), self.directory, ENV | {MARK: self.mark}, LONG)

    def living(self) -> list[str]:
        return [
            process.name
            for process in all_processes().values()
            if process.session_id == self.mark and not process.zombie
        ]

    async def is_gone(self) -> bool:
        """Whether nothing is left; a killed process takes the kernel a moment."""
        left = [process.identity() for process in all_processes().values() if process.session_id == self.mark]
        return await all_ended(left, LONG)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    for process in all_processes().values():
        if process.session_id == made.mark:
            with suppress(ProcessLookupError):
                os.kill(process.pid, 9)


async def test_output_complaint_and_exit_code_come_apart(run: Run, shell: Shell) -> None:
    assert await run(shell("echo out; echo err >&2; exit 3")) == Ended(3, b"out\n", b"err\n")


async def test_a_child_gets_no_key_and_no_token_of_whoever_runs_it(run: Run, shell: Shell) -> None:
    kept_back = {"LAMP_SECRET_KEY": "k", "LAMP_TOKEN": "t", "LAMP_TOKEN_FILE": "f"}
    call = shell("env | grep -c -E 'LAMP_(SECRET_KEY|TOKEN)'; echo $LAMP_STAYS")
    ended = await run(replace(call, env={**call.env, **kept_back, "LAMP_STAYS": "yes"}))
    assert ended.output == b"0\nyes\n"


async def test_a_child_that_was_killed_says_by_which_signal(run: Run, shell: Shell) -> None:
    assert (await run(shell("kill -9 $$"))).exit_code == -9


async def test_a_child_gets_its_input_and_its_end(run: Run, shell: Shell) -> None:
    text = b"x" * 300_000
    assert (await run(replace(shell("cat"), stdin=text))).output == text


async def test_a_child_need_not_read_its_input(run: Run, shell: Shell) -> None:
    big = b"x" * (5 << 20)
    assert await run(replace(shell("echo done"), stdin=big)) == Ended(0, b"done\n")
    assert await run(replace(shell("exec <&-; sleep 0.1; echo done"), stdin=big)) == Ended(0, b"done\n")


async def test_without_input_a_child_reads_an_end_at_once(run: Run, shell: Shell) -> None:
    assert await run(shell("cat; echo done")) == Ended(0, b"done\n")


@pytest.mark.parametrize(
    "helper",
    ["sleep 600 &", "setsid sleep 600 &", "setsid sleep 600 >/dev/null 2>&1 </dev/null &", "yes >&2 &"],
)
@pytest.mark.parametrize("output", [Output.WHOLE, Output.NONE])
async def test_a_helper_left_behind_holds_nobody_up_and_goes_on(
    run: Run, shell: Shell, helper: str, output: Output
) -> None:
    ended = await run(replace(shell(f"{helper} echo $! >helper; echo done"), output=output))
    assert ended.exit_code == 0
    assert ended.output == (b"" if output is Output.NONE else b"done\n")
    if "yes" not in helper:
        assert identity_of(int((shell.directory / "helper").read_text())) is not None


async def test_what_a_helper_left_in_the_group_is_ended_where_that_was_asked_for(run: Run, shell: Shell) -> None:
    assert (await run(replace(shell("sleep 600 & echo done"), ends_helpers=True))).output == b"done\n"
    assert await shell.is_gone()


TREE = """
deep() { if [ "$1" -gt 0 ]; then (deep $(($1 - 1)); sleep 600) & (deep $(($1 - 1)); sleep 600) & fi; }
deep 3
setsid sh -c '(setsid sleep 600 &); trap "" TERM HUP; sleep 600' &
(trap '' TERM; while :; do sleep 0.05 & wait $!; done) &
echo up
sleep 600
"""


async def test_at_the_limit_the_whole_tree_is_gone(run: Run, shell: Shell) -> None:
    with pytest.raises(TookTooLong, match=r"/bin/sh took longer than 1\.5 s and was ended"):
        await run(replace(shell(TREE), limit=timedelta(seconds=1.5)))
    assert shell.living() == []


async def test_cancelled_in_the_middle_it_returns_when_the_whole_tree_is_gone(shell: Shell, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "up")
    task = asyncio.create_task(run_child(shell(TREE.replace("echo up", "echo up >up"))))
    async with asyncio.timeout(WITHIN):
        await asyncio.to_thread((tmp_path / "up").read_text)
    assert shell.living() != []
    task.cancel()
    await asyncio.wait({task}, timeout=WITHIN)
    assert task.cancelled()
    assert shell.living() == []


async def test_cancelled_before_it_began_nothing_is_left(shell: Shell) -> None:
    task = asyncio.create_task(run_child(shell("sleep 600")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=WITHIN)
    assert task.cancelled()
    assert shell.living() == []


async def test_rubbish_comes_as_it_is(run: Run, shell: Shell) -> None:
    rubbish = bytes(range(256)) * 10
    (shell.directory / "rubbish").write_bytes(rubbish)
    assert (await run(shell("cat rubbish"))).output == rubbish


async def test_a_hundred_megabytes_are_cut_to_their_end(run: Run, shell: Shell) -> None:
    call = replace(shell("head -c 100000000 /dev/zero; echo end"), output=Output.END, longest_output=1000)
    assert await run(call) == Ended(0, b"\0" * 996 + b"end\n")


async def test_of_complaints_the_end_is_kept(run: Run, shell: Shell) -> None:
    ended = await run(shell("head -c 10000000 /dev/zero >&2; echo end >&2"))
    assert len(ended.complaint) == 64 << 10
    assert ended.complaint.endswith(b"\0end\n")


async def test_a_child_that_writes_more_than_is_read_is_ended(run: Run, shell: Shell) -> None:
    with pytest.raises(TooMuchOutput, match="wrote more than 100000 bytes"):
        await run(replace(shell("yes"), longest_output=100_000))
    assert shell.living() == []


async def test_output_that_is_not_wanted_is_not_read(run: Run, shell: Shell) -> None:
    line = 'test "$(readlink /proc/self/fd/1)" = /dev/null || echo no; head -c 1000000 /dev/zero'
    assert await run(replace(shell(line), output=Output.NONE)) == Ended(0, b"")


async def test_a_directory_that_is_missing_is_named(run: Run, shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match=r"cannot be run: .*/gone: No such file or directory\."):
        await run(replace(shell("echo no"), work_dir=tmp_path / "gone"))


async def test_a_program_that_is_missing_or_may_not_be_run_is_named(run: Run, shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match=r"no-such-program cannot be run: No such file or directory\."):
        await run(replace(shell(""), command=("no-such-program",)))
    (tmp_path / "plain").write_text("")
    with pytest.raises(NotStarted, match="plain cannot be run: Permission denied"):
        await run(replace(shell(""), command=(str(tmp_path / "plain"),)))
    with pytest.raises(NotStarted, match="null byte"):
        await run(replace(shell(""), command=("/bin/echo", "a\0b")))


async def test_a_child_has_three_descriptors_however_many_we_hold(run: Run, shell: Shell) -> None:
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(200)]
    for fd in held:
        os.set_inheritable(fd, True)
    code = "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:-1])"  # the last one lists them
    call = replace(shell(""), command=(sys.executable, "-c", code), stdin=b"x")
    try:
        assert (await run(call)).output == b"[0, 1, 2]\n"
    finally:
        for fd in held:
            os.close(fd)


async def test_no_descriptor_of_ours_is_left_open(run: Run, shell: Shell) -> None:
    await run(shell("exit 0"))  # the loop's own are made by now
    before = sorted(Path("/proc/self/fd").iterdir())
    await run(replace(shell("sleep 600 & echo done"), stdin=b"x" * 100_000))
    with pytest.raises(TookTooLong):
        await run(replace(shell("sleep 600"), limit=timedelta(0)))
    with pytest.raises(NotStarted):
        await run(replace(shell(""), command=("no-such-program",)))
    assert sorted(Path("/proc/self/fd").iterdir()) == before


async def test_many_run_side_by_side(shell: Shell) -> None:
    async with asyncio.timeout(WITHIN):
        ended = await asyncio.gather(*(run_child(shell(f"sleep 0.2; echo {number}")) for number in range(60)))
    assert [int(one.output) for one in ended] == list(range(60))


async def test_a_child_carries_the_id_of_its_call(run: Run, shell: Shell) -> None:
    ids = [(await run(shell(f"echo ${ENV_CHILD_ID}"))).output for _ in range(2)]
    assert ids[0] != ids[1]
    assert all(len(one.strip()) == 16 for one in ids)


async def test_helpers_are_ended_also_where_the_system_gives_no_pidfd(
    run: Run, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:  # not for the look below, which waits by pidfd where one takes long to go
        without.delattr(os, "pidfd_open")
        assert (await run(replace(shell("sleep 600 & echo done"), ends_helpers=True))).output == b"done\n"
    assert await shell.is_gone()


async def test_a_child_past_its_limit_is_ended_also_without_free_descriptors(shell: Shell) -> None:
    """Its tree cannot be looked at then; its process group is killed, and the limit is what is told."""
    call = replace(shell("exec 2>/dev/null; sleep 600"), limit=timedelta(seconds=0.3))
    with descriptors_gone_meanwhile(0.1), pytest.raises(TookTooLong):
        run_child_here(call)
    assert await shell.is_gone()


@contextmanager
def descriptors_gone_meanwhile(after: float) -> Iterator[None]:
    """All free descriptors are taken by another thread a moment later."""
    over = threading.Event()

    def take() -> None:
        time.sleep(after)
        with only(0):
            over.wait(WITHIN)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

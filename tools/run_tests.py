"""Runs every test in groups, and tells how long each took; the last line is the sum, as pytest would say it.

The whole suite runs on the interpreter that runs this file. What depends least on anything else runs on each other
supported interpreter of this machine too, in a virtual environment of its own; there what needs
PostgreSQL is left out, and properties are tried with fewer examples (see tests/conftest.py).
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 11)
NEWEST_LOOKED_FOR = 15
ELSEWHERE = ("tests/unit", "tests/property", "tests/services", "tests/daemon")
"""The parts that run on the other interpreters."""
NOT_ALONE = "not agents and not browser and not torture"
IN_BRIEF = "TESTS_IN_BRIEF"
"""The variable that tells tests/conftest.py to leave out what one interpreter shows for all."""
AGAIN_AT_MOST = 3
"""Where no more tests of a group failed, they run once more, one at a time. One that passes then is named at the end:
it is a defect to look into. More failures than this are no chance."""
PROBE = "import sys, sqlite3, ssl, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
SUMMARY = re.compile(r"^=*\s*(?:\d+ \w+, )*\d+ \w+ in [\d.]+s\b")


@dataclass
class Group:
    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    unsteady: tuple[str, ...] = ()


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background without it
    workers = os.environ.get("WORKERS", "3")
    side_by_side = ("-n", workers, "--dist", "worksteal")
    here = sys.executable
    groups = [
        tested("the rest", here, *side_by_side, "--ignore=tests/crash", "-m", NOT_ALONE),
        tested("crash", here, *side_by_side, "tests/crash", "-m", NOT_ALONE),
        tested("browser", here, "-n", "2", "--dist", "loadfile", "tests/browser", "-m", "browser"),
        tested("agents", here, *side_by_side, "-m", "agents"),
    ]
    others = dict(interpreters())
    for version, program in others.items():
        groups.append(elsewhere(version, program, side_by_side))
    tell(groups)
    if not others:
        print("No other Python from 3.11 on was found here: only this one was tested.")
    failed = sum(group.failed for group in groups)
    print(f"{sum(group.passed for group in groups)} passed, {failed} failed, ", end="")
    print(f"{sum(group.skipped for group in groups)} skipped in {sum(group.seconds for group in groups):.0f}s")
    return 1 if failed else 0


def interpreters() -> Iterator[tuple[str, str]]:
    """The other supported versions, one program for each, by version."""
    own = "{}.{}".format(*sys.version_info[:2])
    found: dict[str, str] = {}
    for program in candidates():
        version = version_of(program)
        if version and version != own and tuple(map(int, version.split("."))) >= OLDEST:
            found.setdefault(version, program)
    yield from sorted(found.items())


def candidates() -> Iterator[str]:
    """Along PATH, then where pyenv and uv keep theirs, the newest first."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST_LOOKED_FOR + 1)]
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        yield from (str(path) for name in names if os.access(path := Path(folder) / name, os.X_OK))
    for kept in (Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python"):
        yield from (str(path) for path in sorted(kept.glob("*/bin/python3"), reverse=True))


def version_of(program: str) -> str:
    """Empty for one that does not run, or from which no virtual environment can be made."""
    try:
        done = subprocess.run([program, "-c", PROBE], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def elsewhere(version: str, program: str, options: Sequence[str]) -> Group:
    name = f"Python {version}"
    ready = f".venv-{version}/bin/.installed-test"
    began = time.monotonic()
    made = subprocess.run(["make", "--no-print-directory", ready, f"OTHER={program}"], check=False)
    if made.returncode:
        print(f"{name}: {program} was found, but what the tests need could not be installed for it.")
        return Group(name, failed=1, seconds=time.monotonic() - began)
    chosen = (*options, *ELSEWHERE, "-m", NOT_ALONE)
    return tested(name, f".venv-{version}/bin/python", *chosen, **{IN_BRIEF: "1"})


def tested(name: str, python: str, *arguments: str, **variables: str) -> Group:
    """One run of pytest, its output shown as it comes. A run that fails without a failed test counts as a failed test,
    and so does a run without any test.

    Its files are in a directory of its own, which other runs on this machine do not touch; it is kept after a failure.
    """
    print(f"\n── {name} ──", flush=True)
    group, began = Group(name), time.monotonic()
    files = tempfile.mkdtemp(prefix="lamp-")
    cache = Path(files) / "cache"
    command = [python, "-m", "pytest", "-q", "-o", f"cache_dir={cache}"]
    status = shown(group, [*command, "--basetemp", f"{files}/t", *arguments], variables)
    if status and not group.failed:
        group.failed = 1
    if 0 < group.failed == len(failures := last_failed(cache)) <= AGAIN_AT_MOST:
        try_again(group, failures, [*command, "--basetemp", f"{files}/again", "-n", "0"], variables)
    group.seconds = time.monotonic() - began
    if group.failed:
        print(f"The files of this group are kept in {files}.", flush=True)
    else:
        shutil.rmtree(files, ignore_errors=True)
    return group


def shown(group: Group, command: Sequence[str], variables: dict[str, str]) -> int:
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, errors="replace", env=environment() | variables
    ) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            if SUMMARY.match(line):
                count(group, line)
    return running.returncode


def last_failed(cache: Path) -> tuple[str, ...]:
    try:
        return tuple(json.loads((cache / "v/cache/lastfailed").read_text()))
    except (OSError, ValueError):
        return ()


def try_again(group: Group, failures: Sequence[str], command: Sequence[str], variables: dict[str, str]) -> None:
    print(f"\n── {group.name}: what failed, once more, alone ──", flush=True)
    second = Group(group.name)
    status = shown(second, [*command, *failures], variables)
    if status == 0 and second.passed == len(failures):
        group.passed, group.failed = group.passed + second.passed, 0
        group.unsteady = tuple(failures)


def environment() -> dict[str, str]:
    """As it is, but bytecode is kept: a suite that starts a thousand programs would compile them a thousand times."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def count(group: Group, line: str) -> None:
    group.passed = group.failed = group.skipped = 0
    for number, what in COUNT.findall(line):
        if what == "passed":
            group.passed += int(number)
        elif what == "skipped":
            group.skipped += int(number)
        else:
            group.failed += int(number)


def tell(groups: Sequence[Group]) -> None:
    print()
    for group in groups:
        print(f"{group.name:<14} {group.passed:>5} passed {group.failed:>4} failed {group.seconds:>6.0f} s")
    unsteady = [(group.name, test) for group in groups for test in group.unsteady]
    if unsteady:
        print("Failed at first and passed alone, so a defect of the product or of the test:")
    for name, test in unsteady:
        print(f"  {name}: {test}")


if __name__ == "__main__":
    sys.exit(main())

"""What tests of files share: the environment they load with, and git."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

MakeCity = Callable[[Mapping[str, str]], Path]
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True, timeout=180)
    return done.stdout.strip()

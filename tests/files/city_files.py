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


def city_maker(root: Path) -> MakeCity:
    """Writes files into a city's directory; called again, it adds to them."""

    def make(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text or ("[workspace]\n" if name == "city.toml" else ""))
        return root

    return make

"""How much memory this machine, or the group of processes that the daemon is confined to, has left."""

from pathlib import Path

PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
_MB = 1024 * 1024


def available_memory(proc: Path = PROC, groups: Path = GROUPS) -> int | None:
    """In megabytes; None where the system does not tell it in files, as macOS does not."""
    found = [one for one in (_of_machine(proc), _of_group(proc, groups)) if one is not None]
    return min(found) // _MB if found else None


def _of_machine(proc: Path) -> int | None:
    for line in _text(proc / "meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and rest.split()[:1] and rest.split()[0].isdecimal():
            return int(rest.split()[0]) * 1024
    return None


def _of_group(proc: Path, groups: Path) -> int | None:
    """What is left of the limit of the group of this process, and of those above it (version 2 of cgroups)."""
    own = next((line[3:] for line in _text(proc / "self" / "cgroup").splitlines() if line.startswith("0::")), "")
    folder = groups / own.strip("/")
    left = []
    while folder.is_relative_to(groups):
        most, used = _text(folder / "memory.max").strip(), _text(folder / "memory.current").strip()
        if most.isdecimal() and used.isdecimal():
            left.append(max(int(most) - int(used) + _cached(folder), 0))
        if folder == groups:
            break
        folder = folder.parent
    return min(left) if left else None


def _cached(folder: Path) -> int:
    """Files in memory that nobody uses now: they make room at once."""
    for line in _text(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdecimal():
            return int(value)
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

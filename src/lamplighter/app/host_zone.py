"""The machine's time zone by its name, for schedules that name none."""

from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

from lamplighter.kit.schedule import zone_named

LOCALTIME = Path("/etc/localtime")
TIMEZONE = Path("/etc/timezone")


def host_zone(env: Mapping[str, str], *, localtime: Path = LOCALTIME, timezone: Path = TIMEZONE) -> ZoneInfo:
    """The first valid name of: `TZ`, the target of /etc/localtime, the content of /etc/timezone, UTC."""
    for name in (env.get("TZ", "").removeprefix(":"), _linked(localtime), _written(timezone)):
        if name:
            try:
                return zone_named(name)
            except ValueError:
                continue
    return ZoneInfo("UTC")


def _linked(path: Path) -> str:
    try:
        target = str(path.resolve(strict=True))
    except OSError:
        return ""
    return target.partition("/zoneinfo/")[2].removeprefix("posix/").removeprefix("right/")


def _written(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""

"""A crontab read line by line: what each line becomes as an automation, and what of it cannot be carried over."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from lamplighter.kit.cron import parse_cron
from lamplighter.kit.schedule import zone_named

LONGEST_NAME = 40
LONG = "24h"
_SETTING = re.compile(
    r"""\s*(?:"(?P<a>[^"]+)"|'(?P<b>[^']+)'|(?P<c>[A-Za-z_][A-Za-z0-9_]*))\s*=\s*(?P<value>.*?)\s*$"""
)
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MACRO = re.compile(r"\s*(@\w+)\s+(.*)$", re.DOTALL)
_TIMES = re.compile(r"\s*((?:\S+\s+){4}\S+)\s+(.*)$", re.DOTALL)
_USER = re.compile(r"(\S+)\s+(.*)$", re.DOTALL)
_STDIN_END = "END_OF_CRON_INPUT"
_BEFORE_COMMAND = re.compile(
    r"^(?:cd\s+\S+\s*(?:&&|;)\s*|[A-Za-z_][A-Za-z0-9_]*=\S*\s+|(?:exec|nice|ionice|nohup|time|sudo)\s+"
    r"|(?:\S*/)?flock(?:\s+(?:-[wE]\s*\S+|-\S+))*\s+[^\s-]\S*\s+(?:(?:-c|--command)\s+)?[\"']?"
    r"|(?:\S*/)?timeout(?:\s+(?:-[ks]\s*\S+|-\S+))*\s+[\d.]+[smhd]?\s+)"
)
_SHELLS = frozenset({"/bin/sh", "/usr/bin/sh", "sh"})


@dataclass(frozen=True)
class CronJob:
    """One line that becomes an automation; `notes` say what is different there."""

    number: int
    line: str
    name: str
    schedule: str
    exec: str
    timezone: str | None
    notes: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """Says where the automation comes from; the same line is not taken over twice."""
        return f"crontab: {self.line}"

    def body(self, *, enabled: bool) -> dict[str, object]:
        """The automation's keys. Cron ends no job, so the usual time limits are not for these."""
        made: dict[str, object] = {
            "name": self.name, "description": self.description, "exec": self.exec, "gate": "cron",
            "schedule": self.schedule, "enabled": enabled, "timeout": LONG, "deadline": LONG,
        }  # fmt: skip
        return made if self.timezone is None else made | {"timezone": self.timezone}


@dataclass(frozen=True)
class NotCarried:
    """A line, or a setting, that has no counterpart, and why."""

    number: int
    line: str
    why: str


@dataclass
class _Reading:
    system: bool
    settings: dict[str, str] = field(default_factory=dict)
    jobs: list[CronJob] = field(default_factory=list)
    left: list[NotCarried] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


def read_crontab(text: str, *, system: bool = False) -> tuple[list[CronJob], list[NotCarried]]:
    """`system`: each line has a user's name after the times, as in /etc/crontab."""
    reading = _Reading(system)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        setting = _SETTING.match(line)
        if setting is not None:
            _set(reading, number, line, setting)
            continue
        try:
            _job(reading, number, line.strip())
        except ValueError as error:
            reading.left.append(NotCarried(number, line.strip(), str(error)))
    return reading.jobs, reading.left


def _set(reading: _Reading, number: int, line: str, setting: re.Match[str]) -> None:
    name = setting["a"] or setting["b"] or setting["c"]
    value = setting["value"]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    if name == "MAILTO":
        if value:
            why = "what a job prints is kept with its run (`lamp run logs`), and mailed to nobody"
            reading.left.append(NotCarried(number, line.strip(), why))
        return
    if name == "CRON_TZ":
        try:
            zone_named(value)
        except ValueError as error:
            reading.left.append(NotCarried(number, line.strip(), str(error)))
            return
    elif not _SHELL_NAME.fullmatch(name):
        reading.left.append(NotCarried(number, line.strip(), f"`{name}` is no name that a shell can export"))
        return
    reading.settings[name] = value


def _job(reading: _Reading, number: int, line: str) -> None:
    """Raises ValueError if the line cannot be carried over."""
    found = _MACRO.match(line) or _TIMES.match(line)
    if found is None:
        raise ValueError("it is neither a setting, nor five times and a command")
    schedule, command = " ".join(found[1].split()), found[2]
    if schedule == "@reboot":
        raise ValueError("nothing fires when the machine starts; an agent in city.toml runs as long as the city does")
    parse_cron(schedule)
    notes = []
    if reading.system:
        parts = _USER.match(command)
        if parts is None:
            raise ValueError("there is no command after the user's name")
        notes.append(f"it runs as the user of the city, not as `{parts[1]}`")
        command = parts[2]
    name = _free(_name_of(command), reading.names)
    reading.names.add(name)
    script = _script(command, reading.settings)
    zone = reading.settings.get("CRON_TZ")
    reading.jobs.append(CronJob(number, line, name, schedule, script, zone, tuple(notes)))


def _script(command: str, settings: Mapping[str, str]) -> str:
    """The command as cron runs it: in the home directory, with the settings above it, by the shell that they name."""
    body, given = _split_input(command)
    shell = settings.get("SHELL", "/bin/sh")
    if shell not in _SHELLS:
        body = f"{shlex.quote(shell)} -c {shlex.quote(body)}"
    if given is not None:
        body = f"{{ {body}\n}} <<'{_STDIN_END}'\n{given}\n{_STDIN_END}"
    exports = [
        f"export {name}={shlex.quote(value)}" for name, value in settings.items() if name not in ("CRON_TZ", "SHELL")
    ]
    return "\n".join([*exports, "cd", body])


def _split_input(command: str) -> tuple[str, str | None]:
    """What follows the first `%` is the command's input, with further ones as line breaks; an escaped one is a `%`."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", command)]
    return parts[0].strip(), "\n".join(parts[1:]) if len(parts) > 1 else None


def _name_of(command: str) -> str:
    """A name from the first program that the command runs: `/opt/bin/backup.sh --all` gives `backup`."""
    rest = command.strip().lstrip("[({ ")
    while (found := _BEFORE_COMMAND.match(rest)) is not None:
        rest = rest[found.end() :]
    words = rest.split()
    if len(words) > 1 and re.fullmatch(
        r"(?:\S*/)?(?:ba|z|da)?sh|(?:\S*/)?(?:python|perl|ruby|node|php)[\d.]*", words[0]
    ):
        words = [word for word in words[1:] if not word.startswith("-")] or words
    first = re.sub(r"\.[a-z0-9]{1,4}$", "", words[0].rpartition("/")[2]) if words else ""
    return re.sub(r"[^a-z0-9]+", "-", first.lower()).strip("-")[:LONGEST_NAME] or "job"


def _free(name: str, taken: set[str]) -> str:
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found

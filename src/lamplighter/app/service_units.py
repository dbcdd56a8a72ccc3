"""The city as a service of the machine: a systemd unit or a launchd property list."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from xml.sax.saxutils import escape

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.files.workshop import with_own
from lamplighter.adapters.processes.child import Call, NotStarted, Output, TookTooLong, run_child_here
from lamplighter.kit.errors import UsageError

LIMIT = timedelta(seconds=30)
LABEL = "city.lamplighter."


@dataclass(frozen=True)
class Unit:
    """A file for the service manager, with the commands that enable and disable it."""

    path: Path
    content: str
    enable: tuple[tuple[str, ...], ...]
    disable: tuple[tuple[str, ...], ...]


def unit_for(paths: CityPaths, env: Mapping[str, str], *, system: bool, platform: str = sys.platform) -> Unit:
    """Raises UsageError on a platform with neither systemd nor launchd."""
    if platform == "darwin":
        return _launchd(paths, env, system=system)
    if platform.startswith("linux"):
        return _systemd(paths, env, system=system)
    raise UsageError("There is no service manager here that this program knows.", hint="Run `lamp daemon run`.")


def program() -> tuple[str, ...]:
    return (sys.executable, "-m", "lamplighter")


def is_service(env: Mapping[str, str], pid: int) -> bool:
    """Whether the service manager started the process with this id and environment as a city's daemon."""
    by_systemd = env.get("SYSTEMD_EXEC_PID") == str(pid)  # children of a service inherit the variable too
    return by_systemd or env.get("XPC_SERVICE_NAME", "").startswith(LABEL)


def safe_name(paths: CityPaths) -> str:
    """The city's part of the unit name: its directory's name, and enough of its id to keep two of that name apart."""
    word = re.sub(r"[^a-z0-9]+", "-", paths.root.name.lower()).strip("-") or "city"
    return f"{word}-{paths.city_id()[-6:]}"


def run_all(commands: tuple[tuple[str, ...], ...], env: Mapping[str, str]) -> list[str]:
    """Run the commands; returns those that must be run by hand, each with the reason if it failed."""
    left: list[str] = []
    for command in commands:
        if shutil.which(command[0]) is None:
            left.append(shlex.join(command))
            continue
        why = _failure(command, env)
        if why is not None:
            left.append(f"{shlex.join(command)}    # failed here: {why[:200]}")
    return left


def _failure(command: tuple[str, ...], env: Mapping[str, str]) -> str | None:
    """Run the command; returns why it failed, None if it did not."""
    try:
        ended = run_child_here(Call(command, None, env, LIMIT, output=Output.END))
    except (NotStarted, TookTooLong) as error:
        return error.message
    return ended.output.decode(errors="replace").strip() if ended.exit_code else None


def _systemd(paths: CityPaths, env: Mapping[str, str], *, system: bool) -> Unit:
    name = f"lamplighter-{safe_name(paths)}.service"
    folder = Path("/etc/systemd/system") if system else _config_home(env) / "systemd/user"
    control = ("systemctl",) if system else ("systemctl", "--user")
    user = f"User={env.get('USER') or os.getuid()}\n" if system else ""
    run, again = (
        " ".join(_quoted(word) for word in (*program(), "--city", str(paths.root), "daemon", verb))
        for verb in ("run", "restart")
    )
    content = f"""\
[Unit]
Description=Lamplighter: the city {paths.root}
After=network.target

[Service]
Type=simple
{user}ExecStart={run}
# A reload replaces the daemon, as the same process, and keeps agents and runs; a restart is a stop and a start.
ExecReload={again}
WorkingDirectory={str(paths.root).replace("%", "%%")}
Environment={_quoted(f"PATH={with_own(env.get('PATH', os.defpath))}")}
StandardOutput=append:{str(paths.log).replace("%", "%%")}
StandardError=append:{str(paths.log).replace("%", "%%")}
# Agents outlive the daemon: it finds them again. Anything but `process` would kill them with it.
KillMode=process
# A stop that was asked for is not undone; a crash is.
Restart=on-failure
RestartSec=2
TimeoutStopSec=infinity

[Install]
WantedBy={"multi-user.target" if system else "default.target"}
"""
    enable = ((*control, "daemon-reload"), (*control, "enable", "--now", name))
    disable = ((*control, "disable", "--now", name),)
    return Unit(folder / name, content, enable, disable)


def _launchd(paths: CityPaths, env: Mapping[str, str], *, system: bool) -> Unit:
    label = f"{LABEL}{safe_name(paths)}"
    folder = (
        Path("/Library/LaunchDaemons") if system else Path(env.get("HOME", "~")).expanduser() / "Library/LaunchAgents"
    )
    words = "".join(
        f"    <string>{escape(word)}</string>\n" for word in (*program(), "--city", str(paths.root), "daemon", "run")
    )
    content = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{escape(label)}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>WorkingDirectory</key><string>{escape(str(paths.root))}</string>
  <key>EnvironmentVariables</key>
  <dict>
    <key>PATH</key><string>{escape(with_own(env.get("PATH", os.defpath)))}</string>
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <!-- Agents outlive the daemon: it finds them again. -->
  <key>AbandonProcessGroup</key><true/>
  <key>StandardOutPath</key><string>{escape(str(paths.log))}</string>
  <key>StandardErrorPath</key><string>{escape(str(paths.log))}</string>
</dict>
</plist>
"""
    path = folder / f"{label}.plist"
    domain = "system" if system else f"gui/{os.getuid()}"
    enable = (("launchctl", "bootstrap", domain, str(path)),)
    return Unit(path, content, enable, (("launchctl", "bootout", f"{domain}/{label}"),))


def _config_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME", "~")).expanduser() / ".config")


def _quoted(word: str) -> str:
    """Escape a word for a systemd unit: quoted where needed, with `%` and `$` doubled."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if re.search(r"[\s\"'\\;]", word) or "=" in word else text

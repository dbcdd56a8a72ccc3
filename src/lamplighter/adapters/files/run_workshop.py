"""Writes the files of a run's session, readable only by their owner: trigger, token and the program's own files."""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.open_marks import held, is_held
from lamplighter.adapters.files.secrets import city_key, hand_over
from lamplighter.adapters.files.seeding import lay_mirrors, note_entries, take_out_entries, write_seeds
from lamplighter.adapters.files.versions import version_of
from lamplighter.adapters.files.workshop import with_own
from lamplighter.adapters.processes.child import Call, Output, run_child_here
from lamplighter.domain.city.model import City
from lamplighter.domain.city.run_plan import SHELL, CannotRun, RunPlan, run_environment
from lamplighter.domain.runs import tracing
from lamplighter.domain.runs.prompt import Handed, completion_id, prompt
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.logins import home_of, key_of
from lamplighter.domain.sessions.model import SessionSpec, session_name
from lamplighter.domain.sessions.presets.model import Invocation, McpServer, OwnLog, Place, Request
from lamplighter.domain.tokens import run_token
from lamplighter.kit.errors import LampError
from lamplighter.ports.run_workshop import LoginSeen, Prepared, RunOrder

ASKED = timedelta(seconds=15)
LONGEST_ARGUMENT = 100_000
"""Bytes of a prompt on a command line; Linux takes 128 kB for one argument."""
LONGEST_FILE = 1 << 20
LOG_READ = 1 << 18
INSTRUCTIONS = "instructions.md"
RUNS = "runs"
TRIGGER = "trigger.json"
TOKEN = "token"  # noqa: S105  the name of a file
ENTRIES = "entries.json"
MESSAGE = "message.md"
NOTES = "notes.md"
OPEN = "open.lock"
MCP_PATH = "/mcp"


@dataclass(frozen=True)
class FileRunWorkshop:
    """`runtime` is the city's `.gc`; `env` is that of the process that starts sessions."""

    runtime: Path
    env: Mapping[str, str]

    def installed(self, command: str, env: Mapping[str, str]) -> bool:
        return shutil.which(command, path=env.get("PATH") or self._path()) is not None

    def prepare(self, city: City, order: RunOrder) -> Prepared:
        if order.plan.home is not None:
            order.plan.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = self.runtime / RUNS / order.run
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        token = run_token(city_key(self.runtime), order.run)
        hand_over(folder / TOKEN, token)
        write_atomically(folder / TRIGGER, (json.dumps(order.trigger, indent=1) + "\n").encode(), mode=0o600)
        if order.turn.message:
            write_atomically(folder / MESSAGE, (order.turn.message + "\n").encode(), mode=0o600)
        write_atomically(folder / NOTES, order.notes[1].encode(), mode=0o600)
        for name, text in order.turn.files:
            write_atomically(folder / name, (text + "\n").encode(), mode=0o600)
        env = self._environment(city, order.plan, _own(order, folder))
        instructions = instructions_of(order.plan)
        called = self._invocation(order, folder, token, env, instructions)
        _must_be_free(called, order)
        home = Path(env.get("HOME") or str(Path.home()))
        places = {Place.FILES: folder, Place.HOME: home, Place.WORK: order.work_dir}
        lay_mirrors(called.mirrors, folder, home)
        note_entries(called.files, places, folder / ENTRIES)
        write_seeds(called.files, places)
        spec = SessionSpec(
            name=session_name(order.run),
            command=called.argv,
            work_dir=str(order.work_dir),
            env={**called.env, **env, **called.fixed},
            meta={meta.RUN: order.run} | ({meta.SPEAKS_TO: order.plan.speaks_to} if order.plan.speaks_to else {}),
            takes_input=called.takes_input,
            process_names=order.plan.preset.process_names,
            nudge=called.nudge,
        )
        return Prepared(spec, _in_force(order.plan, env, instructions))

    def login(self, city: City, plan: RunPlan, node: str) -> LoginSeen | None:
        if plan.preset.login is None:
            return None
        env = self._environment(city, plan, {})
        home = Path(home_of(plan.preset, env))
        marks = [_mark(home / name) for name in plan.preset.login.files]
        return LoginSeen(key_of(plan.preset, env, node), " ".join(marks))

    def asked(self, city: City, plan: RunPlan) -> bool | None:
        if plan.preset.login is None or not plan.preset.login.ask:
            return None
        env = self._environment(city, plan, {})
        try:
            ended = run_child_here(Call(plan.preset.login.ask, city.root, env, ASKED, output=Output.END))
        except LampError:
            return None
        if ended.exit_code == 0:
            return True
        denied = re.search(plan.preset.login.denies, ended.output.decode(errors="replace"))
        return False if plan.preset.login.denies and denied else None

    def _environment(self, city: City, plan: RunPlan, own: Mapping[str, str]) -> dict[str, str]:
        return run_environment(city, plan, parent={**self.env, "PATH": self._path()}, own=own)

    def forget(self, run: str) -> None:
        folder = self.runtime / RUNS / session_name(run)
        (folder / TOKEN).unlink(missing_ok=True)
        take_out_entries(folder / ENTRIES)
        shutil.rmtree(folder, ignore_errors=True)

    def log_of(self, run: str, log: OwnLog) -> str:
        folder = self.runtime / RUNS / session_name(run)
        try:
            newest = max(folder.glob(log.path), key=lambda path: path.stat().st_mtime_ns, default=None)
            if newest is None:
                return ""
            with newest.open("rb") as file:
                file.seek(max(newest.stat().st_size - LOG_READ, 0))
                return file.read(LOG_READ).decode(errors="replace")
        except OSError:
            return ""  # it is being removed, or no business of ours

    def is_open(self, run: str) -> bool:
        return is_held(self.runtime / RUNS / session_name(run) / OPEN)

    def hold_open(self, run: str) -> int | None:
        """A descriptor that keeps the run marked as open for as long as any process has it; None if one has it already.

        Programs that are executed inherit it.
        """
        return held(self.runtime / RUNS / session_name(run) / OPEN)

    def _invocation(
        self, order: RunOrder, folder: Path, token: str, env: Mapping[str, str], instructions: str
    ) -> Invocation:
        plan = order.plan
        headless = plan.preset.headless
        if headless is None:
            raise CannotRun("not_headless", f"{plan.preset.title} cannot run without a terminal.")
        has_mcp = plan.preset.has_mcp and order.api_url is not None
        mcp = McpServer(f"{order.api_url}{MCP_PATH}", token) if has_mcp else None
        if len(instructions.encode()) > LONGEST_ARGUMENT:
            instructions = _in_a_file(instructions, folder)
        handed_on = Handed(str(folder / NOTES), *order.notes, order.cursor)
        if plan.speaks_to:  # it has not the variables of the run
            handed_on = Handed(str(folder / NOTES), *order.notes, of=order.automation)
        words = prompt(
            instructions,
            run=order.run,
            context_file=str(folder / TRIGGER),
            has_mcp=has_mcp,
            turn=order.turn,
            notes=handed_on,
            plans=plan.plans,
        )
        build = plan.preset.interactive if order.by_hand else headless
        if order.by_hand:
            words = ""  # the person says what comes next
        elif plan.preset.name == SHELL:
            words = instructions  # a shell runs them as they are
        return build(
            Request(
                work_dir=str(order.work_dir),
                files_dir=str(folder),
                prompt=words,
                model=plan.model,
                effort=plan.effort,
                mode=plan.mode,
                mcp=mcp,
                session=order.run,
                resume=order.turn.resume,
                as_root=os.geteuid() == 0,
                env=env,
            )
        )

    def _path(self) -> str:
        return with_own(self.env.get("PATH", os.defpath))


def instructions_of(plan: RunPlan) -> str:
    """The automation's prompt with the texts of its files. Raises CannotRun for one that cannot be read."""
    texts = [plan.instructions, *(_text_of(name, plan.prompt_folders) for name in plan.prompt_files)]
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _text_of(name: str, folders: Sequence[Path]) -> str:
    tried = [folder / name for folder in folders]
    found = next((path for path in tried if path.is_file()), None)
    if found is None:
        raise _no_prompt(f"The file `{name}` of the prompt is not there: {', '.join(str(path) for path in tried)}.")
    inside = any(found.resolve().is_relative_to(folder.resolve()) for folder in folders)
    if not inside:
        raise _no_prompt(f"The file `{name}` of the prompt lies outside the city and the automation's rig.")
    try:
        data = found.read_bytes()
        if len(data) > LONGEST_FILE:
            raise _no_prompt(f"{found} has {len(data)} bytes; a prompt has at most {LONGEST_FILE}.")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise _no_prompt(f"{found} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise _no_prompt(f"{found} is not UTF-8 text.") from error
    return text.replace("\0", "\ufffd")


def _no_prompt(why: str) -> CannotRun:
    return CannotRun("prompt_unreadable", why, hint="Mend `prompt_file` or `includes` of the automation.")


def _in_a_file(instructions: str, folder: Path) -> str:
    """What is too long for a command line is read by the program from a file."""
    write_atomically(folder / INSTRUCTIONS, (instructions + "\n").encode(), mode=0o600)
    return f"Your instructions are in the file {folder / INSTRUCTIONS}. Read all of it first, then follow it."


def _in_force(plan: RunPlan, env: Mapping[str, str], instructions: str) -> dict[str, str]:
    """Only what is known: a model or an effort that nobody chose is left to the program."""
    preset = plan.preset
    told = {
        "preset": preset.name,
        "version": version_of(preset.program, env),
        "model": plan.model,
        "effort": "" if plan.effort is None else plan.effort.value,
        "mode": plan.mode.value,
        "prompt_digest": sha256(instructions.encode()).hexdigest(),
        "fallback": "named" if plan.fallback else "",
    }
    if preset.login is not None:
        key = key_of(preset, env, "")
        told |= {"login_home": key.home, "login_account": key.account}
    return {name: value for name, value in told.items() if value}


def _mark(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}:{found.st_size}"


def _must_be_free(called: Invocation, order: RunOrder) -> None:
    """Raises CannotRun for a variable of the configuration's that the run needs for itself."""
    for name, ours in called.fixed.items():
        if order.plan.env.get(name, ours) != ours and name not in order.plan.preset.merges:
            raise CannotRun(
                "variable_taken",
                f"The configuration sets {name}, which {order.plan.preset.title} needs for the run's own value.",
                hint="Take it out of the configuration's `env`; the mode of a run is set by `mode`.",
            )


def _own(order: RunOrder, folder: Path) -> dict[str, str]:
    own = {
        **tracing.variables(order.trigger),
        **order.env,
        "LAMP_RUN_ID": order.run,
        "LAMP_AUTOMATION": order.automation,
        "LAMP_ACTOR": f"run:{order.run}",
        "LAMP_TRIGGER_FILE": str(folder / TRIGGER),
        "LAMP_RUN_TOKEN_FILE": str(folder / TOKEN),
        "LAMP_NOTES_FILE": str(folder / NOTES),
        "LAMP_NOTES_VERSION": str(order.notes[0]),
        "LAMP_CURSOR": order.cursor,
        "LAMP_COMPLETION_ID": completion_id(order.run, order.turn.round),
        "LAMP_ROUND": str(order.turn.round),
        "LAMP_DIR": str(order.work_dir),
        "GC_DIR": str(order.work_dir),
    }
    if order.turn.message:
        own["LAMP_MESSAGE_FILE"] = str(folder / MESSAGE)
    return own if order.api_url is None else own | {"LAMP_API_URL": order.api_url}

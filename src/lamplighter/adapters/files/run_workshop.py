"""Writes the files of a run's session, readable only by their owner: trigger, token and the program's own files."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lamplighter.adapters.files.atomic import write_atomically
from lamplighter.adapters.files.secrets import city_key, hand_over
from lamplighter.adapters.files.seeding import write_seeds
from lamplighter.adapters.files.workshop import with_own
from lamplighter.domain.access import run_token
from lamplighter.domain.city.model import City
from lamplighter.domain.city.run_plan import SHELL, CannotRun, run_environment
from lamplighter.domain.runs.prompt import prompt
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import SessionSpec, session_name
from lamplighter.domain.sessions.presets.model import Invocation, McpServer, Place, Request
from lamplighter.ports.run_workshop import RunOrder

RUNS = "runs"
TRIGGER = "trigger.json"
TOKEN = "token"  # noqa: S105  the name of a file
MCP_PATH = "/mcp"


@dataclass(frozen=True)
class FileRunWorkshop:
    """`runtime` is the city's `.gc`; `env` is that of the process that starts sessions."""

    runtime: Path
    env: Mapping[str, str]

    def installed(self, command: str, env: Mapping[str, str]) -> bool:
        return shutil.which(command, path=env.get("PATH") or self._path()) is not None

    def prepare(self, city: City, order: RunOrder) -> SessionSpec:
        folder = self.runtime / RUNS / order.run
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        token = run_token(city_key(self.runtime), order.run)
        hand_over(folder / TOKEN, token)
        write_atomically(folder / TRIGGER, (json.dumps(order.trigger, indent=1) + "\n").encode(), mode=0o600)
        env = run_environment(city, order.plan, parent={**self.env, "PATH": self._path()}, own=_own(order, folder))
        called = self._invocation(order, folder, token, env)
        home = Path(env.get("HOME") or str(Path.home()))
        write_seeds(called.files, {Place.FILES: folder, Place.HOME: home, Place.WORK: order.work_dir})
        return SessionSpec(
            name=session_name(order.run),
            command=called.argv,
            work_dir=str(order.work_dir),
            env={**called.env, **env},
            meta={meta.RUN: order.run},
            takes_input=called.takes_input,
            process_names=order.plan.preset.process_names,
            nudge=called.nudge,
        )

    def forget(self, run: str) -> None:
        folder = self.runtime / RUNS / session_name(run)
        (folder / TOKEN).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)

    def _invocation(self, order: RunOrder, folder: Path, token: str, env: Mapping[str, str]) -> Invocation:
        plan = order.plan
        headless = plan.preset.headless
        if headless is None:
            raise CannotRun("not_headless", f"{plan.preset.title} cannot run without a terminal.")
        has_mcp = plan.preset.has_mcp and order.api_url is not None
        mcp = McpServer(f"{order.api_url}{MCP_PATH}", token) if has_mcp else None
        words = prompt(plan.instructions, run=order.run, context_file=str(folder / TRIGGER), has_mcp=has_mcp)
        return headless(
            Request(
                work_dir=str(order.work_dir),
                files_dir=str(folder),
                prompt=plan.instructions if plan.preset.name == SHELL else words,  # a shell runs them as they are
                model=plan.model,
                mode=plan.mode,
                mcp=mcp,
                session=order.run,
                as_root=os.geteuid() == 0,
                env=env,
            )
        )

    def _path(self) -> str:
        return with_own(self.env.get("PATH", os.defpath))


def _own(order: RunOrder, folder: Path) -> dict[str, str]:
    own = {
        "LAMP_RUN_ID": order.run,
        "LAMP_AUTOMATION": order.automation,
        "LAMP_ACTOR": f"run:{order.run}",
        "LAMP_TRIGGER_FILE": str(folder / TRIGGER),
        "LAMP_RUN_TOKEN_FILE": str(folder / TOKEN),
        "LAMP_DIR": str(order.work_dir),
        "GC_DIR": str(order.work_dir),
    }
    return own if order.api_url is None else own | {"LAMP_API_URL": order.api_url}

"""Builds what agent runs need on this machine: sessions, files, worktrees, artifacts and the target selector."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lamplighter.adapters.artifacts.local import LocalArtifacts
from lamplighter.adapters.files.run_workshop import FileRunWorkshop
from lamplighter.adapters.files.workspaces import LocalWorkspaceFiles
from lamplighter.adapters.git.command import Git
from lamplighter.adapters.git.worktrees import GitWorktrees
from lamplighter.adapters.sessions.voice import Voice
from lamplighter.app.fronts import with_fronts
from lamplighter.app.membership import place_of
from lamplighter.app.secrets import box_of
from lamplighter.app.sessions import open_named, open_provider
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.automation_loops import Agents
from lamplighter.domain.city.model import City
from lamplighter.domain.city.run_plan import RunPlan
from lamplighter.domain.runs.target import Candidate, Selection
from lamplighter.domain.sessions.logins import Login
from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.ports.artifacts import ArtifactStore
from lamplighter.ports.selector import Selector
from lamplighter.services import configurations
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.store.tx import Store

ARTIFACTS = "artifacts"
SPOKEN = "spoken"
WORKTREES = "worktrees"
CACHE = "cache"


def agents_of(
    opened: OpenCity, city: City, api_url: Callable[[], str | None], tools_ready: Callable[[], Awaitable[None]]
) -> Agents:
    """Raises UsageError for an unknown session provider or an artifact URL that names no bucket."""
    env, runtime = opened.settings.env, opened.paths.runtime
    paths, clock, ids = opened.paths, opened.clock, opened.ids
    own = open_named(city.runs.provider, paths, env, clock=clock, ids=ids)
    voice = Voice.of(
        runtime / SPOKEN, own, lambda: open_provider(paths, city, env, clock=clock, ids=ids), clock=clock, ids=ids
    )
    return Agents(
        sessions=voice,
        provider=city.runs.provider,
        workshop=FileRunWorkshop(runtime, with_fronts(opened, city)),
        worktrees=worktrees_of(opened),
        artifacts=artifact_store(opened, city),
        selector=_selector(opened),
        api_url=api_url,
        files=LocalWorkspaceFiles(runtime / CACHE),
        tools_ready=tools_ready,
    )


def worktrees_of(opened: OpenCity) -> GitWorktrees:
    return GitWorktrees(opened.paths.runtime / WORKTREES, Git(opened.settings.env))


def artifact_store(opened: OpenCity, city: City) -> ArtifactStore:
    url = city.artifacts.url
    if not url.startswith("s3://"):
        place = opened.paths.root / url.removeprefix("file://") if url else opened.paths.runtime / ARTIFACTS
        return LocalArtifacts(Path(place))
    from lamplighter.adapters.artifacts.s3 import S3Artifacts, bucket_of

    return S3Artifacts(bucket_of(url, opened.settings.env))


async def asked_login(opened: OpenCity, store: Store, login: Login) -> bool | None:
    """Ask the program of a login, with the environment of the configuration that used it; None for one of another node.

    Which machine a node is on is told by its place: the city's `.gc` there.
    """
    here = next((one for one in await store.read(lambda tx: tx.nodes.all()) if one.name == login.key.node), None)
    preset = PRESETS.get(login.key.preset)
    if preset is None or preset.login is None or (here is not None and here.place != place_of(opened)):
        return None
    known = await store.read(configurations.known)
    chosen = known.get(login.configuration or "")
    env = {} if chosen is None else dict(chosen.env)
    if chosen is not None and chosen.home:
        env[preset.login.variable] = login.key.home
    city = opened.config.city
    plan = RunPlan(city.root, preset, "", env=await StoredSecrets(store, box_of(opened)).opened(env))
    workshop = FileRunWorkshop(opened.paths.runtime, opened.settings.env)
    return await asyncio.to_thread(workshop.asked, city, plan)


def _selector(opened: OpenCity) -> Selector:
    """The selector loads its HTTP client when a run first asks a model."""
    return LazySelector(opened.settings.env)


class LazySelector:
    """Loads the selector when a run first needs one: most cities never ask a model."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    async def select(self, payload: Mapping[str, Any], candidates: Sequence[Candidate]) -> Selection:
        from lamplighter.adapters.models.selector import ModelSelector, endpoint_of

        return await ModelSelector(endpoint_of(self._env)).select(payload, candidates)

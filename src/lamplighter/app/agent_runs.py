"""Builds what agent runs need on this machine: sessions, files, worktrees, artifacts and the target selector."""

from collections.abc import Callable
from pathlib import Path

from lamplighter.adapters.artifacts.local import LocalArtifacts
from lamplighter.adapters.files.run_workshop import FileRunWorkshop
from lamplighter.adapters.git.command import Git
from lamplighter.adapters.git.worktrees import GitWorktrees
from lamplighter.app.sessions import open_named
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.automation_loops import Agents
from lamplighter.domain.city.model import City
from lamplighter.ports.artifacts import ArtifactStore
from lamplighter.ports.selector import Selector

ARTIFACTS = "artifacts"
WORKTREES = "worktrees"


def agents_of(opened: OpenCity, city: City, api_url: Callable[[], str | None]) -> Agents:
    """Raises UsageError for an unknown session provider or an artifact URL that names no bucket."""
    env, runtime = opened.settings.env, opened.paths.runtime
    return Agents(
        sessions=open_named(city.runs.provider, opened.paths, env, clock=opened.clock, ids=opened.ids),
        provider=city.runs.provider,
        workshop=FileRunWorkshop(runtime, env),
        worktrees=GitWorktrees(runtime / WORKTREES, Git(env)),
        artifacts=artifact_store(opened, city),
        selector=_selector(opened),
        api_url=api_url,
    )


def artifact_store(opened: OpenCity, city: City) -> ArtifactStore:
    url = city.artifacts.url
    if not url.startswith("s3://"):
        place = opened.paths.root / url.removeprefix("file://") if url else opened.paths.runtime / ARTIFACTS
        return LocalArtifacts(Path(place))
    from lamplighter.adapters.artifacts.s3 import S3Artifacts, bucket_of

    return S3Artifacts(bucket_of(url, opened.settings.env))


def _selector(opened: OpenCity) -> Selector:
    """The selector loads its HTTP client when a run first asks a model."""
    from lamplighter.app.lazy_selector import LazySelector

    return LazySelector(opened.settings.env)

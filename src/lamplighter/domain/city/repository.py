"""The `.lamplighter.toml` of a repository: how it wants its worktrees to be made ready, where its rig allows it."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from lamplighter.domain.city.decode import build, read
from lamplighter.domain.city.run_sections import RepositoryFile, RepositoryWorkspace, RigWorkspace
from lamplighter.domain.city.tree import Findings, Origin, Place

FILE = ".lamplighter.toml"


def decoded(tree: Mapping[str, Any], origin: Origin, found: Findings) -> RepositoryWorkspace:
    """The workspace that the file declares; what is wrong with it is among the findings."""
    built = build(read(RepositoryFile, tree, Place(origin), found), found)
    return built.workspace if isinstance(built, RepositoryFile) else RepositoryWorkspace()


def joined(rig: RigWorkspace, own: RepositoryWorkspace) -> RigWorkspace:
    """The rig's workspace, with what the repository says where the rig says nothing."""
    usual = RepositoryWorkspace()
    taken = {
        one.name: getattr(own, one.name)
        for one in fields(RepositoryWorkspace)
        if getattr(rig, one.name) == getattr(usual, one.name)
    }
    return replace(rig, **taken)


def on_record(tree: Mapping[str, Any]) -> RepositoryWorkspace:
    """The workspace of a tree that was found to be sound before."""
    return decoded(tree, Origin("repository", FILE), Findings())

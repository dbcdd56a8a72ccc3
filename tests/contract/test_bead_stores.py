"""The contract of bead stores on each of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamplighter.adapters.beads.bd import BdBackend
from lamplighter.adapters.beads.exec import ExecBackend
from lamplighter.adapters.beads.external import ExternalBeads
from lamplighter.adapters.processes.program import Program
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.ports.beads import BeadStore
from lamplighter.services.context import acting
from lamplighter.services.own_beads import OwnBeads
from lamplighter.store.url import Place, open_direct
from lamplighter.testing.contracts.beads import BeadContract, OpenBeads

CITY = "cty_contract"
HERE = Path(__file__).parent


class TestOwnBeads(BeadContract):
    """On both databases."""

    @pytest.fixture
    def open_beads(self, place: Place) -> OpenBeads:
        clock = SystemClock()

        @contextmanager
        def opened() -> Iterator[BeadStore]:
            store = open_direct(place, CITY)
            try:
                store.transact(lambda tx: tx.cities.ensure("contract", clock.now()))
                context = lambda: acting("human", clock.now(), IdSource(clock))  # noqa: E731  as short as what it stands for
                yield OwnBeads(store, prefix=lambda _rig: "lc", context=context)
            finally:
                store.close()

        return opened


class TestExecBeads(BeadContract):
    """A real script that keeps its beads in a locked JSON file."""

    @pytest.fixture
    def open_beads(self, tmp_path: Path) -> OpenBeads:
        return _outside(ExecBackend(_program(tmp_path, "exec_beads.py")))


class TestBdBeads(BeadContract):
    """Against the stand-in for bd."""

    @pytest.fixture
    def open_beads(self, tmp_path: Path) -> OpenBeads:
        return _outside(BdBackend(_program(tmp_path, "bd_stand_in.py")))


def _outside(backend: ExecBackend | BdBackend) -> OpenBeads:
    @contextmanager
    def opened() -> Iterator[BeadStore]:
        yield ExternalBeads(backend)

    return opened


def _program(directory: Path, script: str) -> Program:
    """The script behind a launcher, so that it runs with this very Python and without a site's start-up."""
    launcher = directory / script.removesuffix(".py")
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{HERE / script}" "$@"\n')
    launcher.chmod(0o755)
    return Program(str(launcher), directory, {"PATH": "/usr/bin:/bin"})

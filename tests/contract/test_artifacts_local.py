"""The directory of artifacts keeps the contract, and stays inside itself."""

from pathlib import Path

import pytest

from lamplighter.adapters.artifacts.local import LocalArtifacts
from lamplighter.domain.runs.artifacts import JSON_TYPE
from lamplighter.ports.artifacts import ArtifactsUnavailable
from lamplighter.testing.contracts.artifacts import KEY, ArtifactContract


class TestLocal(ArtifactContract):
    @pytest.fixture
    async def artifacts(self, tmp_path: Path) -> LocalArtifacts:
        return LocalArtifacts(tmp_path / "artifacts")


async def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "completion.json").write_text("secret")
    (tmp_path / "artifacts/runs").mkdir(parents=True)
    (tmp_path / "artifacts/runs/run_1").symlink_to(outside)
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    with pytest.raises(ArtifactsUnavailable, match="leads out"):
        await artifacts.put("runs/run_1/deep/er.json", b"mine", content_type=JSON_TYPE)
    with pytest.raises(ArtifactsUnavailable, match="leads out"):
        await artifacts.get(KEY)
    with pytest.raises(ArtifactsUnavailable, match="leads out"):
        await artifacts.put(KEY, b"mine", content_type=JSON_TYPE)
    with pytest.raises(ArtifactsUnavailable, match="leads out"):
        await artifacts.delete(KEY)
    assert (outside / "completion.json").read_text() == "secret"
    assert [path.name for path in outside.iterdir()] == ["completion.json"]


async def test_a_directory_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file")
    with pytest.raises(ArtifactsUnavailable):
        await LocalArtifacts(tmp_path / "artifacts").put(KEY, b"x", content_type=JSON_TYPE)


async def test_a_write_that_was_cut_off_leaves_nothing_to_be_listed(tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path)
    await artifacts.put(KEY, b"{}", content_type=JSON_TYPE)
    (tmp_path / "runs/run_1/.new-abc").write_text("half")
    assert await artifacts.keys("") == [KEY]

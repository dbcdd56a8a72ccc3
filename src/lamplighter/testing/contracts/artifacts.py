"""The contract of artifact stores. A test class inherits ArtifactContract and provides the fixture `artifacts`."""

import asyncio

import pytest

from lamplighter.domain.runs.artifacts import JSON_TYPE, Artifact, KeyRefused, key_of, prefix_of, written
from lamplighter.ports.artifacts import ArtifactStore, ArtifactUnknown

KEY = key_of("run_1", Artifact.COMPLETION)

REFUSED = [
    "",
    "/",
    "/etc/passwd",
    "../up",
    "runs/../../up",
    "runs/./x",
    "runs//x",
    "runs/",
    ".hidden",
    "a b",
    "a\\b",
    "nul\0",
    "ü",
    "x" * 501,
    "runs/run_1/%2e%2e/x",
]


class ArtifactContract:
    @pytest.fixture
    async def artifacts(self) -> ArtifactStore:
        raise NotImplementedError("the test class gives this fixture")

    async def test_what_was_put_is_there(self, artifacts: ArtifactStore) -> None:
        content = written({"b": 1, "a": "ü\n"})
        await artifacts.put(KEY, content, content_type=JSON_TYPE)
        assert await artifacts.get(KEY) == content

    async def test_bytes_come_back_as_they_are(self, artifacts: ArtifactStore) -> None:
        for content in (b"", bytes(range(256)) * 4096):
            await artifacts.put("runs/run_1/output.bin", content, content_type="application/octet-stream")
            assert await artifacts.get("runs/run_1/output.bin") == content

    async def test_a_second_write_replaces_the_first(self, artifacts: ArtifactStore) -> None:
        await artifacts.put(KEY, b"first, and longer", content_type=JSON_TYPE)
        await artifacts.put(KEY, b"second", content_type=JSON_TYPE)
        assert await artifacts.get(KEY) == b"second"
        assert await artifacts.keys(prefix_of("run_1")) == [KEY]

    async def test_writes_side_by_side_leave_one_of_them_whole(self, artifacts: ArtifactStore) -> None:
        contents = [bytes([65 + number]) * 50_000 for number in range(8)]
        await asyncio.gather(*(artifacts.put(KEY, content, content_type=JSON_TYPE) for content in contents))
        assert await artifacts.get(KEY) in contents

    async def test_what_is_not_there_is_unknown(self, artifacts: ArtifactStore) -> None:
        for key in (KEY, "runs/run_2/completion.json", "runs"):
            with pytest.raises(ArtifactUnknown):
                await artifacts.get(key)

    async def test_keys_are_those_below_a_prefix(self, artifacts: ArtifactStore) -> None:
        keys = [key_of(run, artifact) for run in ("run_1", "run_10", "run_2") for artifact in Artifact]
        for key in keys:
            await artifacts.put(key, b"{}", content_type=JSON_TYPE)
        assert await artifacts.keys(prefix_of("run_1")) == sorted(key for key in keys if key.startswith("runs/run_1/"))
        assert await artifacts.keys("") == sorted(keys)
        assert await artifacts.keys("runs/run_3/") == []

    async def test_deleting_may_be_repeated(self, artifacts: ArtifactStore) -> None:
        await artifacts.put(KEY, b"{}", content_type=JSON_TYPE)
        await artifacts.delete(KEY)
        await artifacts.delete(KEY)
        assert await artifacts.keys("") == []
        with pytest.raises(ArtifactUnknown):
            await artifacts.get(KEY)

    @pytest.mark.parametrize("key", REFUSED)
    async def test_a_key_that_is_none_is_refused_everywhere(self, artifacts: ArtifactStore, key: str) -> None:
        with pytest.raises(KeyRefused):
            await artifacts.put(key, b"x", content_type=JSON_TYPE)
        with pytest.raises(KeyRefused):
            await artifacts.get(key)
        with pytest.raises(KeyRefused):
            await artifacts.delete(key)
        assert await artifacts.keys("") == []

    async def test_a_prefix_that_is_none_is_refused(self, artifacts: ArtifactStore) -> None:
        for prefix in ("runs", "../", "/", "runs/../"):
            with pytest.raises(KeyRefused):
                await artifacts.keys(prefix)

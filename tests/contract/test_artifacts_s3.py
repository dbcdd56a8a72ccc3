"""The bucket of artifacts keeps the contract, against a real S3 server on loopback."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import httpx2
import obstore
import pytest
from moto.server import ThreadedMotoServer

from lamplighter.adapters.artifacts.s3 import Bucket, S3Artifacts, bucket_of
from lamplighter.domain.runs.artifacts import JSON_TYPE, KeyRefused
from lamplighter.kit.errors import UsageError
from lamplighter.ports.artifacts import ArtifactsUnavailable
from lamplighter.testing.contracts.artifacts import KEY, ArtifactContract

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str) -> Bucket:
    name = f"lamp-{uuid4().hex[:12]}"
    httpx2.put(f"{endpoint}/{name}", timeout=180).raise_for_status()  # its first answer takes the server a while
    return bucket_of(f"s3://{name}/city/one", KEYS | {"AWS_ENDPOINT_URL": endpoint})


class TestS3(ArtifactContract):
    @pytest.fixture
    async def artifacts(self, bucket: Bucket) -> S3Artifacts:
        return S3Artifacts(bucket)


async def test_objects_lie_below_the_prefix_with_their_content_type(bucket: Bucket) -> None:
    await S3Artifacts(bucket).put(KEY, b"{}", content_type=JSON_TYPE)
    whole = replace(bucket, prefix="")
    assert await S3Artifacts(whole).keys("") == [f"city/one/{KEY}"]
    found = await obstore.get_async(S3Artifacts(whole)._store, f"city/one/{KEY}")
    assert found.attributes["Content-Type"] == JSON_TYPE


async def test_a_bucket_that_is_not_there_is_unavailable(bucket: Bucket) -> None:
    gone = S3Artifacts(replace(bucket, name="never-made"))
    for call in (gone.put(KEY, b"x", content_type=JSON_TYPE), gone.get(KEY), gone.keys("")):
        with pytest.raises(ArtifactsUnavailable, match="never-made"):
            await call


async def test_a_store_that_does_not_answer_is_unavailable() -> None:
    away = bucket_of("s3://b", KEYS | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    with pytest.raises(ArtifactsUnavailable):
        await S3Artifacts(away).put(KEY, b"x", content_type=JSON_TYPE)


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(bucket_of("s3://b", {"AWS_SECRET_ACCESS_KEY": "hidden", "AWS_SESSION_TOKEN": "hidden"}))


def test_a_bucket_s_url_is_read_with_the_environment() -> None:
    assert bucket_of("s3://b", {}) == Bucket("b")
    found = bucket_of("s3://b/p/q/", KEYS | {"AWS_REGION": "eu-1", "AWS_SESSION_TOKEN": "t"})
    assert (found.prefix, found.region, found.access_key_id, found.session_token) == ("p/q", "eu-1", "k", "t")


@pytest.mark.parametrize("url", ["s3://", "s3:///x", "http://b/x", "b", ""])
def test_a_url_without_a_bucket_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        bucket_of(url, {})


def test_a_prefix_that_leads_upwards_is_refused() -> None:
    with pytest.raises(KeyRefused):
        bucket_of("s3://b/../x", {})

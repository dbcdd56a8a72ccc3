"""Stores artifacts in a bucket of any store that speaks the S3 protocol."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import S3Store

from lamplighter.domain.runs.artifacts import checked_key, checked_prefix
from lamplighter.kit.errors import UsageError
from lamplighter.ports.artifacts import ArtifactsUnavailable, ArtifactUnknown

REGION = "us-east-1"
TIMEOUT = timedelta(seconds=30)


@dataclass(frozen=True)
class Bucket:
    """`endpoint` is set for stores other than Amazon's, which expect the bucket in the path, not in the host name."""

    name: str
    prefix: str = ""
    region: str = REGION
    endpoint: str = ""
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


def bucket_of(url: str, env: Mapping[str, str]) -> Bucket:
    """The bucket of `s3://bucket/prefix`, with keys, region and endpoint from `env`. Raises UsageError."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc:
        raise UsageError(f"`{url}` names no bucket.", hint="Write [artifacts] url as s3://bucket/prefix.")
    prefix = parts.path.strip("/")
    if prefix:
        checked_key(prefix)
    return Bucket(
        name=parts.netloc,
        prefix=prefix,
        region=env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or REGION,
        endpoint=env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL") or "",
        access_key_id=env.get("AWS_ACCESS_KEY_ID", ""),
        secret_access_key=env.get("AWS_SECRET_ACCESS_KEY", ""),
        session_token=env.get("AWS_SESSION_TOKEN", ""),
    )


class S3Artifacts:
    def __init__(self, bucket: Bucket, *, timeout: timedelta = TIMEOUT) -> None:
        self._bucket = bucket
        self._store = _opened(bucket, timeout)

    async def put(self, key: str, content: bytes, *, content_type: str) -> None:
        with self._told(key):
            await obstore.put_async(
                self._store, self._full(checked_key(key)), content, attributes={"Content-Type": content_type}
            )

    async def get(self, key: str) -> bytes:
        with self._told(key):
            found = await obstore.get_async(self._store, self._full(checked_key(key)))
            return bytes(await found.bytes_async())

    async def keys(self, prefix: str) -> Sequence[str]:
        with self._told(prefix):
            below = self._full(checked_prefix(prefix))
            found: list[str] = []
            async for batch in obstore.list(self._store, prefix=below):
                found += [entry["path"].removeprefix(self._full("")) for entry in batch]
            return sorted(found)

    async def delete(self, key: str) -> None:
        with self._told(key):
            await obstore.delete_async(self._store, self._full(checked_key(key)))

    def _full(self, key: str) -> str:
        return f"{self._bucket.prefix}/{key}" if self._bucket.prefix else key

    @contextmanager
    def _told(self, key: str) -> Iterator[None]:
        try:
            yield
        except (NotFoundError, FileNotFoundError) as error:
            if "NoSuchBucket" in str(error):
                raise self._away(error) from error
            raise ArtifactUnknown(key) from error
        except (BaseError, OSError) as error:
            raise self._away(error) from error

    def _away(self, error: Exception) -> ArtifactsUnavailable:
        """Quotes only the start of the error's first line: further lines may repeat what was signed."""
        said = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        return ArtifactsUnavailable(
            f"Bucket {self._bucket.name} did not take the request: {said}.",
            hint="Check [artifacts] url and the AWS_* variables of the daemon.",
        )


def _opened(bucket: Bucket, timeout: timedelta) -> S3Store:
    secrets = {
        "access_key_id": bucket.access_key_id,
        "secret_access_key": bucket.secret_access_key,
        "session_token": bucket.session_token,
        "endpoint": bucket.endpoint,
    }
    given = {key: value for key, value in secrets.items() if value}
    return S3Store(
        bucket.name,
        region=bucket.region,
        virtual_hosted_style_request=not bucket.endpoint,
        client_options={"allow_http": bucket.endpoint.startswith("http://"), "timeout": timeout},
        retry_config={"max_retries": 2, "retry_timeout": timeout},
        **given,  # type: ignore[arg-type]  # the names of S3Config
    )

"""What went wrong on the way to a city or in it, as errors of the same kinds that a local city raises."""

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from lamplighter.domain.access import Forbidden, Unauthenticated
from lamplighter.kit.errors import Conflict, Kind, LampError, NotFound, Unavailable, UsageError
from lamplighter.services.guarding import VersionChanged

_BY_STATUS: Mapping[int, type[LampError]] = {401: Unauthenticated, 403: Forbidden, 412: VersionChanged}
_BY_KIND: Mapping[Kind, type[LampError]] = {
    Kind.USAGE: UsageError,
    Kind.NOT_FOUND: NotFound,
    Kind.CONFLICT: Conflict,
    Kind.UNAVAILABLE: Unavailable,
    Kind.GONE: Unavailable,
    Kind.NO: LampError,
}
_KIND_BY_STATUS: Mapping[int, Kind] = {
    400: Kind.USAGE,
    404: Kind.NOT_FOUND,
    409: Kind.CONFLICT,
    413: Kind.USAGE,
    422: Kind.USAGE,
}
_KEYS = ("type", "title", "detail", "hint", "status")
SHOW_TOKEN = "Show one that holds: --token-file, LAMP_TOKEN or `lamp context add`; `lamp token create` makes one."  # noqa: S105


class CityUnreachable(Unavailable):
    """No answer came. `reached` is False if the city certainly did not get the request."""

    def __init__(self, message: str, *, hint: str, reached: bool = True, passing: bool = True) -> None:
        """`passing`: it may be over the next moment."""
        super().__init__(message, hint=hint)
        self.reached = reached
        self.passing = passing


class NotACity(Unavailable):
    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"What answers at {url} is not a city's API: {what}.",
            hint="Check the address; `lamp daemon status` on the city's machine tells it.",
        )


class RouteUnknown(Unavailable):
    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"The city at {url} does not know what is asked of it: {what}",
            hint="Check the path of the address; or the city is older than this program: see `lamp version` there.",
        )


def _is_no_route(problem: Mapping[str, Any]) -> bool:
    return problem["type"] == "http" and problem["status"] in (404, 405)


def told_error(problem: Mapping[str, Any]) -> LampError:
    """The error that a problem JSON tells of: a subclass of the class for its kind, with the name it had there."""
    status = problem["status"]
    try:
        kind = Kind(problem["type"])
    except ValueError:  # the cause of a refused completion, a bug of the city, or a kind that only a newer one has
        kind = _KIND_BY_STATUS.get(status, Kind.UNAVAILABLE)
    base = _BY_STATUS.get(status, _BY_KIND[kind])
    made: Any = type(str(problem["title"]).replace(" ", ""), (base,), {"kind": kind})
    error: LampError = made.__new__(made)
    hint = SHOW_TOKEN if status == 401 else str(problem["hint"])
    LampError.__init__(error, str(problem["detail"]), hint=hint)
    return error


def problem_in(status: int, media_type: str, body: bytes, url: str) -> LampError:
    """The error in an answer that is not a success."""
    if media_type.startswith("application/problem+json"):
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if isinstance(found, dict) and all(key in found for key in _KEYS):
            return RouteUnknown(url, found["detail"]) if _is_no_route(found) else told_error(found)
    if status in (502, 503, 504):
        return CityUnreachable(
            f"Something in front of the city at {url} answers that it cannot reach it (status {status}).",
            hint="Look there whether the city runs: `lamp status`.",
        )
    if 300 <= status < 400:
        return NotACity(url, f"it sends us elsewhere (status {status})")
    return NotACity(url, f"status {status}, {media_type.partition(';')[0] or 'no type'}")


def unreached(error: Exception, url: str) -> CityUnreachable:
    """Why no connection could be made."""
    causes = list(_causes(error))
    if any(isinstance(one, socket.gaierror) for one in causes):
        return CityUnreachable(
            f"The host of {url} is not known.",
            hint="Check the address for a typing error.",
            reached=False,
            passing=False,
        )
    if any(isinstance(one, ssl.SSLError) for one in causes):
        told = next((one.verify_message for one in causes if isinstance(one, ssl.SSLCertVerificationError)), None)
        why = "what answers there does not speak HTTPS" if told is None else f"its certificate is not trusted ({told})"
        return CityUnreachable(
            f"There is no safe connection to {url}: {why}.",
            hint="Check http or https in the address, and the certificate of the server.",
            reached=False,
            passing=False,
        )
    return CityUnreachable(
        f"Nothing answers at {url}.",
        hint="Check the address, and on the city's machine whether it runs: `lamp status`.",
        reached=False,
    )


def cut_off(url: str, *, done: bool | None) -> CityUnreachable:
    """The connection broke before the answer came. `done`: None if it may have been done."""
    if done is None:
        return CityUnreachable(
            f"The connection to {url} was cut before the answer came; it may have been done.",
            hint="Look whether it was before you ask again.",
        )
    return CityUnreachable(f"The connection to {url} was cut before the answer came.", hint="Ask again.")


def too_slow(url: str, seconds: float, *, done: bool | None) -> CityUnreachable:
    hint = "Ask again." if done is not None else "It may still be done: look whether it was before you ask again."
    return CityUnreachable(f"The city at {url} did not answer within {seconds:g} s.", hint=hint)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__

"""Whether the spans of runs are reported, as OpenTelemetry's own variables say, and who sends them.

The SDK is an extra. It is loaded only where these variables ask for spans.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lamplighter.kit import log
from lamplighter.kit.errors import UsageError
from lamplighter.ports.traces import SpanSink
from lamplighter.services import traces

EXPORTER, DISABLED = "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
OTLP, NONE, PROTOCOL = "otlp", "none", "http/protobuf"
NEEDED = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack

    from lamplighter.daemon.traces import Traces
    from lamplighter.domain.city.model import City
    from lamplighter.kit.clock import Clock
    from lamplighter.store.tx import Store


class TracesUnusable(UsageError):
    """Spans are asked for, and cannot be sent as it is asked."""


@dataclass(frozen=True)
class TracesTold:
    """What is told of traces: where spans go, empty for nowhere, and what is wrong with that."""

    address: str = ""
    wrong: str = ""
    hint: str = ""


def asks_by(env: Mapping[str, str]) -> str | None:
    """The variable that asks for the spans of runs; None if none does, or they are turned off."""
    exporter = env.get(EXPORTER, "").strip().lower()
    if env.get(DISABLED, "").strip().lower() == "true" or exporter == NONE:
        return None
    return next((name for name in (EXPORTER, *ENDPOINTS) if env.get(name, "").strip()), None)


def check(env: Mapping[str, str]) -> None:
    """Raises TracesUnusable for an exporter or a protocol that is not spoken here, or without the SDK."""
    asks = asks_by(env)
    if asks is None:
        return
    exporter = env.get(EXPORTER, "").strip().lower() or OTLP
    if exporter != OTLP:
        raise TracesUnusable(
            f"{EXPORTER} is `{exporter}`; spans of runs are sent by `{OTLP}` only.",
            hint=f"Set it to `{OTLP}`, or to `{NONE}` for no spans.",
        )
    named = next((name for name in PROTOCOLS if env.get(name, "").strip()), None)
    if named is not None and env[named].strip().lower() != PROTOCOL:
        raise TracesUnusable(
            f"{named} is `{env[named].strip()}`; spans of runs are sent by `{PROTOCOL}` only.",
            hint=f"Set {PROTOCOLS[0]} to `{PROTOCOL}`, and {ENDPOINTS[0]} to an address that takes it.",
        )
    if not is_installed():
        raise TracesUnusable(
            f"{asks} asks for the spans of runs, and no OpenTelemetry SDK is installed here.",
            hint=f"Install `lamplighter[traces]`, or set {EXPORTER} to `{NONE}`.",
        )


def is_installed() -> bool:
    from importlib.util import find_spec

    try:
        return all(find_spec(name) is not None for name in NEEDED)
    except ImportError:
        return False


def sink_of(env: Mapping[str, str]) -> SpanSink | None:
    """Who sends the spans; None if they are not asked for. Takes a moment. Raises TracesUnusable."""
    if asks_by(env) is None:
        return None
    check(env)
    from lamplighter.adapters.traces.otlp import OtlpSink

    try:
        return OtlpSink()
    except (ValueError, OSError) as error:
        raise TracesUnusable(f"The settings for spans of runs cannot be used: {error}.") from error


@dataclass(frozen=True)
class Outlet:
    """Who sends spans in this process, if anybody; `problem` says why nobody does though they are asked for."""

    sink: SpanSink | None = None
    problem: str = ""
    hint: str = ""


async def open_traces(stack: "AsyncExitStack", env: Mapping[str, str]) -> Outlet:
    """Spans that cannot be sent keep nothing else from working: it is told, and they are not sent."""
    import asyncio

    try:
        sink = await asyncio.to_thread(sink_of, env) if asks_by(env) is not None else None
    except TracesUnusable as error:
        log.get().warning("traces.unusable", error=error.message, hint=error.hint)
        return Outlet(None, error.message, error.hint)
    if sink is not None:
        stack.callback(sink.close)
    return Outlet(sink)


async def traces_of(outlet: Outlet, store: "Store", clock: "Clock", city: "Callable[[], City]") -> "Traces | None":
    """The loop that reports what ends from now on, or since it was last reported; None where spans go nowhere."""
    if outlet.sink is None:
        if await store.read(lambda tx: tx.cities.traced()) is not None:
            await store.transact(traces.forget_position)
        return None
    from lamplighter.daemon.traces import Traces

    await store.transact(traces.begin_position)  # before anything is fired
    return Traces(store, clock, outlet.sink, city)


@dataclass(frozen=True)
class TracesVerb:
    """What the running city tells of its traces."""

    outlet: Outlet
    loop: "Traces | None"

    def told(self) -> TracesTold:
        if self.loop is None or self.outlet.sink is None:
            return TracesTold(wrong=self.outlet.problem, hint=self.outlet.hint)
        return TracesTold(self.outlet.sink.address, self.loop.problem or "", self.loop.hint)

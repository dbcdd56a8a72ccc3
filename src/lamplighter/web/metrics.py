"""`/metrics`: the city's numbers in the text format of Prometheus, for those who may read the city."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lamplighter.domain.access import Verb, require
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.context import Context
from lamplighter.services.measures import Measured, Measures
from lamplighter.services.operation import permit
from lamplighter.web.auth import actor_in

PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[tuple[str, str], ...]


@dataclass
class _Series:
    buckets: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    count: int = 0
    total: float = 0.0


@dataclass
class Traffic:
    """How long requests took, by route and status, and how many streams are open."""

    requests: "defaultdict[Labels, _Series]" = field(default_factory=lambda: defaultdict(_Series))
    streams: Counter[str] = field(default_factory=Counter)

    def took(self, method: str, route: str, status: int, seconds: float) -> None:
        series = self.requests[("method", method), ("route", route), ("status", str(status))]
        series.count += 1
        series.total += seconds
        for number, bound in enumerate(BUCKETS):
            series.buckets[number] += seconds <= bound


def route(city: CityOperations, traffic: Traffic) -> Route:
    measures = Measures(city.host)

    async def endpoint(request: Request) -> Response:
        actor = actor_in(request.scope)
        require(actor, Verb.READ)
        now = city.clock.now()
        await city.host.store.read(permit, Verb.READ, Context(actor, now, city.ids, "api"))
        found = await measures.take(now)
        return Response("\n".join([*_of_store(found), *_of_traffic(traffic), ""]), media_type=MEDIA_TYPE)

    return Route(PATH, endpoint)


def _of_store(found: Measured) -> Iterator[str]:
    yield from _family("lamp_runs", "gauge", "Runs under way.", _by("state", found.runs))
    ended: dict[Labels, float] = {
        (("outcome", state), ("reason", reason)): count for (state, reason), count in found.ended.items()
    }
    yield from _family("lamp_runs_total", "counter", "Runs that ended since this process was first asked.", ended)
    yield from _family("lamp_outbox_items", "gauge", "Items that are not settled.", _by("state", found.outbox))
    oldest, lag = _one(found.outbox_oldest), _one(found.schedule_lag)
    yield from _family("lamp_outbox_oldest_seconds", "gauge", "How long the item due first has waited.", oldest)
    yield from _family("lamp_schedule_lag_seconds", "gauge", "How late the trigger due first is.", lag)
    yield from _family("lamp_events_total", "counter", "Events on the city's bus.", _one(found.events))
    yield from _family("lamp_inbox_open", "gauge", "Inbox items that wait for a person.", _one(found.inbox))
    if found.agents is not None:
        yield from _family("lamp_agents", "gauge", "Agents.", _by("state", found.agents))
    starts = _by("reason", found.starts)
    yield from _family("lamp_agent_starts_total", "counter", "Starts of agents since the first time asked.", starts)
    yield from _family("lamp_paused", "gauge", "Whether the city is paused.", _one(int(found.paused)))


def _of_traffic(traffic: Traffic) -> Iterator[str]:
    yield from _family("lamp_stream_clients", "gauge", "Open streams of the API.", _one(traffic.streams.total()))
    name = "lamp_http_request_seconds"
    yield f"# HELP {name} How long requests of the API took."
    yield f"# TYPE {name} histogram"
    for labels, series in sorted(traffic.requests.items()):
        for bound, count in zip(BUCKETS, series.buckets, strict=True):
            yield f"{name}_bucket{_labels((*labels, ('le', f'{bound:g}')))} {count}"
        yield f"{name}_bucket{_labels((*labels, ('le', '+Inf')))} {series.count}"
        yield f"{name}_sum{_labels(labels)} {series.total:.6f}"
        yield f"{name}_count{_labels(labels)} {series.count}"


def _one(value: float) -> dict[Labels, float]:
    return {(): value}


def _by(label: str, counts: Mapping[str, int]) -> dict[Labels, float]:
    return {((label, name),): count for name, count in counts.items()}


def _family(name: str, kind: str, told: str, values: Mapping[Labels, float]) -> Iterator[str]:
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"
    for labels, value in sorted(values.items()):
        yield f"{name}{_labels(labels)} {round(value, 6)}"


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""What people are told of traces: where spans go, and why they go nowhere though they are asked for."""

import socket
from pathlib import Path
from typing import Any

import pytest
from lamp_program import Said, here, lamp, until

from lamplighter.app.traces import TracesUnusable, asks_by, check
from lamplighter.testing.collector import collecting

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
NO_SDK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.fixture
def town(tmp_path: Path) -> Path:
    root = tmp_path / "town"
    assert lamp("init", str(root), "--name", "town", cwd=tmp_path).code == 0
    (root / "city.toml").write_text('[workspace]\nname = "town"\n[api]\nport = 0\n')
    return root


@pytest.fixture
def without_sdk(tmp_path: Path) -> dict[str, str]:
    """The environment of a Python in which the SDK is not installed."""
    (tmp_path / "sitecustomize.py").write_text(NO_SDK)
    return {"PYTHONPATH": str(tmp_path)}


def told(said: Said) -> list[dict[str, Any]]:
    return [one for one in said.json if one["check"] == "traces"]


@pytest.mark.parametrize(
    ("env", "asks"),
    [
        ({}, None),
        ({ENDPOINT: "http://localhost:4318"}, ENDPOINT),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "OTEL_TRACES_EXPORTER"),
        ({ENDPOINT: "http://localhost:4318", "OTEL_SDK_DISABLED": "true"}, None),
        ({ENDPOINT: "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_SERVICE_NAME": "town", ENDPOINT: ""}, None),
    ],
)
def test_the_variables_of_opentelemetry_ask_for_spans(env: dict[str, str], asks: str | None) -> None:
    assert asks_by(env) == asks
    check(env)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_what_is_not_spoken_here_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(TracesUnusable, match=f"{name} is `{value}`"):
        check({ENDPOINT: "http://localhost:4318", name: value})


def test_without_the_sdk_the_city_runs_and_doctor_tells_what_is_missing(
    town: Path, without_sdk: dict[str, str]
) -> None:
    assert told(lamp("doctor", "--json", cwd=town, env=without_sdk)) == []
    asks = without_sdk | {ENDPOINT: "http://localhost:4318"}
    (stopped,) = told(lamp("doctor", "--json", cwd=town, env=asks))
    assert stopped["level"] == "note"
    assert f"{ENDPOINT} asks for the spans of runs, and no OpenTelemetry SDK is installed" in stopped["detail"]
    assert "lamplighter[traces]" in stopped["advice"]
    assert lamp("daemon", "start", cwd=town, env=asks).code == 0
    try:
        (running,) = told(here("doctor", "--json", "--city", str(town)))  # asked from where the variable is not set
        problems = here("status", "--json", "--city", str(town)).json["controller"]["problems"]
        assert here("automation", "create", "tidy", "--exec", "true", "--manual", "--city", str(town)).code == 0
        assert here("automation", "run", "tidy", "--wait", "--city", str(town)).code == 0
    finally:
        assert here("stop", "--city", str(town)).code == 0
    assert (running["level"], running["detail"]) == ("problem", stopped["detail"])
    assert problems["traces"] == stopped["detail"]


def test_doctor_tells_where_spans_go_and_when_nobody_takes_them(town: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with collecting() as collector:
        asks = {ENDPOINT: collector.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        assert lamp("daemon", "start", cwd=town, env=asks).code == 0
        (going,) = told(here("doctor", "--json", "--city", str(town)))
        assert here("stop", "--city", str(town)).code == 0
    assert (going["level"], going["detail"]) == ("ok", f"Spans of runs go to {collector.url}/v1/traces.")
    asks = {ENDPOINT: f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    assert lamp("daemon", "start", cwd=town, env=asks).code == 0
    try:
        assert here("automation", "create", "tidy", "--exec", "true", "--manual", "--city", str(town)).code == 0
        assert here("automation", "run", "tidy", "--wait", "--city", str(town)).code == 0
        until(lambda: "traces" in here("status", "--json", "--city", str(town)).json["controller"]["problems"])
        (down,) = told(here("doctor", "--json", "--city", str(town)))
    finally:
        assert here("stop", "--city", str(town)).code == 0
    assert down["level"] == "problem"
    assert down["detail"].endswith("does not take the spans of runs: Connection refused.")
    assert "once it takes them" in down["advice"]

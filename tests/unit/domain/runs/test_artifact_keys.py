from lamplighter.domain.runs.artifacts import Artifact, key_of, written


def test_keys_are_the_same_for_every_try() -> None:
    assert key_of("run_1", Artifact.COMPLETION) == "runs/run_1/completion.json"
    assert key_of("run_1", Artifact.ENRICHMENT) == "runs/run_1/enrichment.json"


def test_the_same_payload_is_written_the_same() -> None:
    assert written({"b": 1, "a": "ü"}) == written({"a": "ü", "b": 1}) == '{\n  "a": "ü",\n  "b": 1\n}\n'.encode()

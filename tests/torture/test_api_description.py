"""Made-up requests at length: each operation of the API is asked many times, and answers as its description says."""

from pathlib import Path

import pytest
import test_description_holds as bounded

EXAMPLES = 150


@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore")  # of the library that makes requests up
def test_many_made_up_requests_are_answered_as_described(
    tmp_path: Path, counts: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "EXAMPLES", EXAMPLES)
    with bounded.in_a_thread(tmp_path / "town") as city:
        wrong, asked = bounded.answers_of(city)
    counts |= {"operations": asked, "requests": asked * EXAMPLES, "wrong": len(wrong)}
    assert wrong == []

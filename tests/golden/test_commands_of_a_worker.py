"""What commands answer in a city on PostgreSQL, with a worker in place of a daemon."""

from pathlib import Path

import golden_files
import pytest
from golden_city import a_city, running
from lamp_program import until


@pytest.mark.timeout(600)
def test_commands_answer_as_on_record_beside_a_worker(tmp_path: Path, postgres_url: str) -> None:
    with a_city(tmp_path, store=postgres_url) as city:
        city.record("store migrate")
        with running(city, "worker", "--name", "north") as said:
            city.keep("worker", said)
            until(lambda: city.json("status")["last_event"])
            city.record("status")
            city.json("automation", "list")  # brings the files' definitions into the store
            city.record("automation run", "sweep", "--wait")
    golden_files.check("commands_of_a_worker", city.commands)

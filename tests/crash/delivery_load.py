"""Deliveries sent as a real sender does, again and again until they are taken, to a city that is killed meanwhile."""

import hashlib
import hmac
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from automation_watch import look
from crew import JobPool
from lamp_program import here

from lamplighter.store.tx import Tx

SENDERS = 4
PATIENCE = 120
FIRED = "fired.log"


class Sender:
    """Sends GitHub deliveries to the city's port, which stays the same after a restart."""

    def __init__(self, city: Path) -> None:
        self.city = city
        made = here("connection", "create", "gh", "--provider", "github", "--json", "--city", str(city))
        assert made.code == 0, made
        self._secret: str = made.json["secret"]

    def send(self, delivery: str, about: int = 1) -> None:
        """Until it is taken. Fails when nobody takes it for PATIENCE seconds."""
        body = json.dumps({"action": "edited", "issue": {"number": about, "title": delivery}}).encode()
        mac = hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "content-type": "application/json", "x-github-event": "issues", "x-github-delivery": delivery,
            "x-hub-signature-256": f"sha256={mac}",
        }  # fmt: skip
        until = time.monotonic() + PATIENCE
        while not self._taken(body, headers):
            assert time.monotonic() < until, "nobody takes deliveries"
            time.sleep(0.05)

    def _taken(self, body: bytes, headers: dict[str, str]) -> bool:
        try:
            port = json.loads((self.city / ".gc/api.json").read_text())["port"]
            asked = urllib.request.Request(f"http://127.0.0.1:{port}/hooks/gh", body, headers)
            with urllib.request.urlopen(asked, timeout=180) as answer:  # noqa: S310  on loopback
                return bool(answer.status == 202)
        except (OSError, ValueError, urllib.error.URLError):
            return False


def automate(city: Path, text: str = "") -> None:
    folder = city / ".gc/formulas/automations/fix"
    folder.mkdir(parents=True)
    line = f"""printf '%s\\n' "$(tr -d '\\n' < $LAMP_TRIGGER_FILE)" >> {FIRED}"""  # one write: runs work side by side
    (folder / "automation.toml").write_text(
        f"[automation]\nexec = '''{line}'''\ngate = 'webhook'\nconnection = 'gh'\noverlap = 'allow'\n{text}"
    )


def drill(city: Path, crew: JobPool, count: int, *, seed: int = 7, kills: int = 2) -> list[str]:
    """Send so many distinct deliveries, a third of all repeated and out of order, with kills in between; their ids."""
    chance = random.Random(seed)
    ids = [f"delivery-{number}" for number in range(count)]
    todo = [*ids, *chance.choices(ids, k=count // 2)]
    chance.shuffle(todo)
    sender = Sender(city)
    automate(city)
    crew.live("one", city, "up")
    crew.up("one")
    parts = [todo[at :: kills + 1] for at in range(kills + 1)]
    for number, part in enumerate(parts):
        threads = sending(sender, part)
        if number < kills:
            _wait_for(city, (number + 1) * count // (2 * (kills + 1)))
            crew.kill("one")
            crew.live("one", city, "up")
            crew.up("one")
        for thread in threads:
            thread.join()
    return ids


def sending(sender: Sender, part: Sequence[str]) -> list[threading.Thread]:
    def all_of(mine: Sequence[str]) -> None:
        for delivery in mine:
            sender.send(delivery)

    threads = [threading.Thread(target=all_of, args=(part[at::SENDERS],), daemon=True) for at in range(SENDERS)]
    for thread in threads:
        thread.start()
    return threads


def _wait_for(city: Path, kept: int) -> None:
    """Until so many deliveries are kept: the kill then hits the others on their way."""
    until = time.monotonic() + PATIENCE
    while look(city, count_kept) < kept:
        assert time.monotonic() < until
        time.sleep(0.02)


def count_kept(tx: Tx) -> int:
    return len(tx.deliveries.page(connection=None, before=None, limit=100_000))


def all_judged(tx: Tx) -> bool:
    rows = tx.deliveries.page(connection=None, before=None, limit=100_000)
    return bool(rows) and all(row.state == "processed" for row in rows) and not tx.runs.any_active()


def titles_fired(city: Path) -> list[str]:
    """What the command was told, a line for each time it was run: counted outside the product."""
    lines = (city / FIRED).read_text().splitlines()
    return [json.loads(line)["payload"]["issue"]["title"] for line in lines if line]


def runs_kept(city: Path) -> int:
    return look(city, lambda tx: len(tx.runs.page(limit=100_000)))

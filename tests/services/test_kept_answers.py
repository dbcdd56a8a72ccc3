"""What is kept under the key of a request: for a day, for one actor, one operation and one key."""

from dataclasses import replace
from datetime import timedelta

from automation_city import City

from lamplighter.store.idempotency import KEPT_FOR, Slot

CREATE = Slot("ada", "bead.create", "k")
OTHERS = (replace(CREATE, actor="ben"), replace(CREATE, operation="bead.close"), replace(CREATE, key="l"))


def test_a_key_that_is_used_again_after_its_time_leaves_the_others_as_they_are(city: City) -> None:
    for slot in (CREATE, *OTHERS):
        assert city.run(lambda tx, slot=slot: tx.idempotency.take(slot, "first", city.clock.now())) is None
        city.run(lambda tx, slot=slot: tx.idempotency.keep(slot, "1"))
    before = city.clock.now()
    city.clock.advance(KEPT_FOR)
    assert city.run(lambda tx: tx.idempotency.take(CREATE, "second", city.clock.now())) is None
    for slot in OTHERS:
        kept = city.run(lambda tx, slot=slot: tx.idempotency.take(slot, "first", before + timedelta(hours=1)))
        assert (kept.asked, kept.answer) == ("first", "1"), slot

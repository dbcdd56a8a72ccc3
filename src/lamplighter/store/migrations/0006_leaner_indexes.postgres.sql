-- oldest: 5
-- An event is written before it has its number: until then no index over numbers need know of it, and each of them that
-- does costs as much as the row itself.
ALTER TABLE events DROP CONSTRAINT events_seq_key;
DROP INDEX events_of_city;
DROP INDEX events_of_type;
CREATE UNIQUE INDEX events_of_city ON events (city_id, seq) WHERE seq IS NOT NULL;
CREATE INDEX events_of_type ON events (city_id, type, seq) WHERE seq IS NOT NULL;

-- Settled soon after it was made: with room left beside it, its indexes need not be touched again.
ALTER TABLE trigger_events SET (fillfactor = 80);

-- Nothing is looked for by its root.
DROP INDEX beads_by_root;

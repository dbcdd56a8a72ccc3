-- oldest: 27
-- Deliveries with rowids: their bodies stand in the rows, instead of in a page of their own beside each row of an index,
-- so that keeping one and judging it writes half as many pages. Verdicts refer to them, and are put aside meanwhile.
-- Outbox items name several deliveries, or open a thread in Slack: older programs would give them up.
CREATE TABLE kept_verdicts AS SELECT * FROM delivery_verdicts;
DROP TABLE delivery_verdicts;
ALTER TABLE deliveries RENAME TO kept_deliveries;
DROP INDEX deliveries_once;
DROP INDEX deliveries_of;
CREATE TABLE deliveries (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    connection TEXT NOT NULL,
    external_id TEXT,
    headers TEXT NOT NULL,
    body TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'processed')),
    repeats INTEGER NOT NULL DEFAULT 0,
    event_type TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    author TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT '',
    source TEXT NOT NULL DEFAULT 'webhook',
    PRIMARY KEY (city_id, id)
) STRICT;
INSERT INTO deliveries (city_id, id, connection, external_id, headers, body, received_at, state, repeats, event_type,
    title, author, problem, source)
SELECT city_id, id, connection, external_id, headers, body, received_at, state, repeats, event_type,
    title, author, problem, source FROM kept_deliveries ORDER BY city_id, id;
DROP TABLE kept_deliveries;
CREATE UNIQUE INDEX deliveries_once ON deliveries (city_id, connection, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX deliveries_of ON deliveries (city_id, connection, id);

CREATE TABLE delivery_verdicts (
    city_id TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    automation TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    run_id TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (city_id, delivery_id, automation_id, trigger_id),
    FOREIGN KEY (city_id, delivery_id) REFERENCES deliveries (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO delivery_verdicts (city_id, delivery_id, automation_id, trigger_id, automation, verdict, reason, run_id, at)
SELECT city_id, delivery_id, automation_id, trigger_id, automation, verdict, reason, run_id, at FROM kept_verdicts;
DROP TABLE kept_verdicts;

DELETE FROM sqlite_stat1 WHERE tbl IN ('deliveries', 'kept_deliveries', 'delivery_verdicts');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('deliveries', 'sqlite_autoindex_deliveries_1', '100000 100000 1'),
    ('deliveries', 'deliveries_once', '100000 100000 5000 1'),
    ('deliveries', 'deliveries_of', '100000 100000 5000 1'),
    ('delivery_verdicts', 'delivery_verdicts', '200000 200000 2 1 1');
ANALYZE sqlite_schema; -- has this connection read them; others read them with the schema

-- oldest: 12
-- Where deliveries come in; their secrets are in the table of secrets.
CREATE TABLE connections (
    city_id TEXT NOT NULL,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    authors TEXT NOT NULL DEFAULT '[]',
    own TEXT NOT NULL DEFAULT '[]',
    fields TEXT NOT NULL DEFAULT '[]',
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    rotated_at INTEGER,
    previous_until INTEGER,
    last_at INTEGER,
    PRIMARY KEY (city_id, name)
) STRICT, WITHOUT ROWID;

-- What came in, verified, as it came; one that its sender repeats is counted.
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
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX deliveries_once ON deliveries (city_id, connection, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX deliveries_of ON deliveries (city_id, connection, id);

-- What each trigger made of a delivery.
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

-- Deliveries about one thing that wait to become one run.
CREATE TABLE gatherings (
    city_id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    entity TEXT NOT NULL,
    id TEXT NOT NULL,
    deliveries TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, automation_id, trigger_id, entity),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Values of payloads by which runs are found.
CREATE TABLE run_fields (
    city_id TEXT NOT NULL,
    path TEXT NOT NULL,
    value TEXT NOT NULL,
    run_id TEXT NOT NULL,
    PRIMARY KEY (city_id, path, value, run_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_fields_of ON run_fields (city_id, run_id);

CREATE INDEX triggers_of_hook ON triggers (city_id, event_key, automation_id, id) WHERE kind = 'webhook';

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('connections', 'connections', '20 20 1'),
    ('deliveries', 'deliveries', '100000 100000 1'),
    ('deliveries', 'deliveries_once', '100000 100000 5000 1'),
    ('deliveries', 'deliveries_of', '100000 100000 5000 1'),
    ('delivery_verdicts', 'delivery_verdicts', '200000 200000 2 1 1'),
    ('gatherings', 'gatherings', '20 20 5 2 1'),
    ('run_fields', 'run_fields', '400000 400000 50000 500 1'),
    ('run_fields', 'run_fields_of', '400000 400000 4'),
    ('triggers', 'triggers_of_hook', '100 100 5 1 1');
ANALYZE sqlite_schema; -- has this connection read them; others read them with the schema

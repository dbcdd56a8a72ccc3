-- oldest: 12
-- Where deliveries come in; their secrets are in the table of secrets.
CREATE TABLE connections (
    city_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    provider TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    authors TEXT NOT NULL DEFAULT '[]',
    own TEXT NOT NULL DEFAULT '[]',
    fields TEXT NOT NULL DEFAULT '[]',
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    rotated_at BIGINT,
    previous_until BIGINT,
    last_at BIGINT,
    PRIMARY KEY (city_id, name)
);

-- What came in, verified, as it came; one that its sender repeats is counted.
CREATE TABLE deliveries (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    connection TEXT COLLATE "C" NOT NULL,
    external_id TEXT COLLATE "C",
    headers TEXT NOT NULL,
    body TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'processed')),
    repeats BIGINT NOT NULL DEFAULT 0,
    event_type TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    author TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (city_id, id)
);
CREATE UNIQUE INDEX deliveries_once ON deliveries (city_id, connection, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX deliveries_of ON deliveries (city_id, connection, id);

-- What each trigger made of a delivery.
CREATE TABLE delivery_verdicts (
    city_id TEXT COLLATE "C" NOT NULL,
    delivery_id TEXT COLLATE "C" NOT NULL,
    automation_id TEXT COLLATE "C" NOT NULL,
    trigger_id TEXT COLLATE "C" NOT NULL,
    automation TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    run_id TEXT COLLATE "C",
    at BIGINT NOT NULL,
    PRIMARY KEY (city_id, delivery_id, automation_id, trigger_id),
    FOREIGN KEY (city_id, delivery_id) REFERENCES deliveries (city_id, id) ON DELETE CASCADE
);

-- Deliveries about one thing that wait to become one run.
CREATE TABLE gatherings (
    city_id TEXT COLLATE "C" NOT NULL,
    automation_id TEXT COLLATE "C" NOT NULL,
    trigger_id TEXT COLLATE "C" NOT NULL,
    entity TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    deliveries TEXT NOT NULL,
    began_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, automation_id, trigger_id, entity),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
);

-- Values of payloads by which runs are found.
CREATE TABLE run_fields (
    city_id TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (city_id, path, value, run_id)
);
CREATE INDEX run_fields_of ON run_fields (city_id, run_id);

CREATE INDEX triggers_of_hook ON triggers (city_id, event_key, automation_id, id) WHERE kind = 'webhook';

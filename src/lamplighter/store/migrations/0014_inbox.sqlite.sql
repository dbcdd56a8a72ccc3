-- oldest: 12
-- What needs a person: one open item for each need. Failing runs only insert, and find by index that it is there already.
CREATE TABLE inbox_items (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    subject TEXT NOT NULL,
    facts TEXT NOT NULL DEFAULT '{}',
    state TEXT NOT NULL CHECK (state IN ('open', 'settled')),
    opened_at INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL DEFAULT 1,
    last_run TEXT,
    snoozed_until INTEGER,
    snoozed_by TEXT,
    claimed_by TEXT,
    claimed_at INTEGER,
    settled_at INTEGER,
    settled_by TEXT,
    settled_how TEXT NOT NULL DEFAULT '',
    told TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX inbox_open ON inbox_items (city_id, fingerprint) WHERE state = 'open';
CREATE INDEX inbox_of_fingerprint ON inbox_items (city_id, fingerprint, settled_at);
CREATE INDEX inbox_of_subject ON inbox_items (city_id, subject) WHERE state = 'open';
CREATE INDEX inbox_to_tell ON inbox_items (city_id, id) WHERE told <> state;
CREATE INDEX inbox_settled ON inbox_items (city_id, settled_at) WHERE state = 'settled';

-- Who has seen which item.
CREATE TABLE seen (
    city_id TEXT NOT NULL,
    item_id TEXT NOT NULL,
    person TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (city_id, item_id, person),
    FOREIGN KEY (city_id, item_id) REFERENCES inbox_items (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- What people are told: one notice for each item (or run), destination and occasion.
CREATE TABLE notices (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    destination TEXT NOT NULL,
    about TEXT NOT NULL,
    what TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'held', 'sent', 'failed', 'dropped')),
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT NOT NULL DEFAULT '',
    sent_at INTEGER,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX notices_once ON notices (city_id, about, destination, what);
CREATE INDEX notices_held ON notices (city_id, id) WHERE state = 'held';
CREATE INDEX notices_of_destination ON notices (city_id, destination, id);

-- What a run needs a person for: empty if nothing, NULL as long as nobody has looked (runs of an older program).
ALTER TABLE runs ADD COLUMN fingerprint TEXT;
CREATE INDEX runs_by_fingerprint ON runs (city_id, fingerprint, ended_at, id) WHERE fingerprint IS NOT NULL;
CREATE INDEX runs_unjudged ON runs (city_id, id)
    WHERE fingerprint IS NULL AND state IN ('failed', 'needs_human', 'timed_out');
CREATE INDEX runs_retried ON runs (city_id, retry_of) WHERE retry_of IS NOT NULL;

ALTER TABLE automations ADD COLUMN quiet_since INTEGER;
CREATE INDEX automations_noted ON automations (city_id, id)
    WHERE quiet_since IS NOT NULL OR disabled_reason <> '' OR problems <> '[]' OR source = 'agent';
CREATE INDEX outbox_failed ON outbox (city_id, id) WHERE state = 'failed';

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('inbox_items', 'inbox_items', '2000 2000 1'),
    ('inbox_items', 'inbox_open', '50 50 1'),
    ('inbox_items', 'inbox_of_fingerprint', '2000 2000 5 1'),
    ('inbox_items', 'inbox_of_subject', '50 50 2'),
    ('inbox_items', 'inbox_to_tell', '5 5 1'),
    ('inbox_items', 'inbox_settled', '2000 2000 1'),
    ('seen', 'seen', '2000 2000 2 1'),
    ('notices', 'notices', '2000 2000 1'),
    ('notices', 'notices_once', '2000 2000 2 1 1'),
    ('notices', 'notices_held', '10 10 1'),
    ('notices', 'notices_of_destination', '2000 2000 500 1'),
    ('runs', 'runs_by_fingerprint', '10000 10000 100 1 1'),
    ('runs', 'runs_unjudged', '50 50 1'),
    ('runs', 'runs_retried', '1000 1000 1'),
    ('automations', 'automations_noted', '20 20 1'),
    ('outbox', 'outbox_failed', '20 20 1');
ANALYZE sqlite_schema; -- has this connection read them; others read them with the schema

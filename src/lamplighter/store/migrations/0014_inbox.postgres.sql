-- oldest: 12
-- What needs a person: one open item for each need. Failing runs only insert, and find by index that it is there already.
CREATE TABLE inbox_items (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    facts TEXT NOT NULL DEFAULT '{}',
    state TEXT NOT NULL CHECK (state IN ('open', 'settled')),
    opened_at BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    count BIGINT NOT NULL DEFAULT 1,
    last_run TEXT COLLATE "C",
    snoozed_until BIGINT,
    snoozed_by TEXT,
    claimed_by TEXT,
    claimed_at BIGINT,
    settled_at BIGINT,
    settled_by TEXT,
    settled_how TEXT NOT NULL DEFAULT '',
    told TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (city_id, id)
);
CREATE UNIQUE INDEX inbox_open ON inbox_items (city_id, fingerprint) WHERE state = 'open';
CREATE INDEX inbox_of_fingerprint ON inbox_items (city_id, fingerprint, settled_at);
CREATE INDEX inbox_of_subject ON inbox_items (city_id, subject) WHERE state = 'open';
CREATE INDEX inbox_to_tell ON inbox_items (city_id, id) WHERE told <> state;
CREATE INDEX inbox_settled ON inbox_items (city_id, settled_at) WHERE state = 'settled';

-- Who has seen which item.
CREATE TABLE seen (
    city_id TEXT COLLATE "C" NOT NULL,
    item_id TEXT COLLATE "C" NOT NULL,
    person TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (city_id, item_id, person),
    FOREIGN KEY (city_id, item_id) REFERENCES inbox_items (city_id, id) ON DELETE CASCADE
);

-- What people are told: one notice for each item (or run), destination and occasion.
CREATE TABLE notices (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    destination TEXT COLLATE "C" NOT NULL,
    about TEXT COLLATE "C" NOT NULL,
    what TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'held', 'sent', 'failed', 'dropped')),
    created_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,
    last_error TEXT NOT NULL DEFAULT '',
    sent_at BIGINT,
    PRIMARY KEY (city_id, id)
);
CREATE UNIQUE INDEX notices_once ON notices (city_id, about, destination, what);
CREATE INDEX notices_held ON notices (city_id, id) WHERE state = 'held';
CREATE INDEX notices_of_destination ON notices (city_id, destination, id);

-- What a run needs a person for: empty if nothing, NULL as long as nobody has looked (runs of an older program).
ALTER TABLE runs ADD COLUMN fingerprint TEXT COLLATE "C";
CREATE INDEX runs_by_fingerprint ON runs (city_id, fingerprint, ended_at, id) WHERE fingerprint IS NOT NULL;
CREATE INDEX runs_unjudged ON runs (city_id, id)
    WHERE fingerprint IS NULL AND state IN ('failed', 'needs_human', 'timed_out');
CREATE INDEX runs_retried ON runs (city_id, retry_of) WHERE retry_of IS NOT NULL;

ALTER TABLE automations ADD COLUMN quiet_since BIGINT;
CREATE INDEX automations_noted ON automations (city_id, id)
    WHERE quiet_since IS NOT NULL OR disabled_reason <> '' OR problems <> '[]' OR source = 'agent';
CREATE INDEX outbox_failed ON outbox (city_id, id) WHERE state = 'failed';

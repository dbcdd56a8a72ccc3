-- oldest: 22
-- One thing done to many runs, and what became of each of them. Outbox items of a kind that older programs do not know
-- work them off.
CREATE TABLE bulk_actions (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    action TEXT NOT NULL,
    said TEXT NOT NULL DEFAULT '{}',
    query TEXT,
    creator TEXT NOT NULL,
    role TEXT NOT NULL,
    token TEXT,
    run_id TEXT,
    session TEXT,
    surface TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('working', 'done', 'aborted')),
    total INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    ended_at INTEGER,
    aborted_by TEXT,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE bulk_items (
    city_id TEXT NOT NULL,
    bulk_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    outcome TEXT NOT NULL DEFAULT 'waiting' CHECK (outcome IN ('waiting', 'done', 'refused')),
    reason TEXT NOT NULL DEFAULT '',
    made TEXT,
    at INTEGER,
    PRIMARY KEY (city_id, bulk_id, number),
    FOREIGN KEY (city_id, bulk_id) REFERENCES bulk_actions (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- The bulk action that caused the change, if one did.
ALTER TABLE audit ADD COLUMN bulk TEXT;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('bulk_actions', 'bulk_actions', '1000 1000 1'),
    ('bulk_items', 'bulk_items', '100000 100000 100 1');
ANALYZE sqlite_schema;

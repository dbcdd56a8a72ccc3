-- oldest: 22
-- One thing done to many runs, and what became of each of them. Outbox items of a kind that older programs do not know
-- work them off.
CREATE TABLE bulk_actions (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    said TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    query TEXT COLLATE "C",
    creator TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    token TEXT COLLATE "C",
    run_id TEXT COLLATE "C",
    session TEXT COLLATE "C",
    surface TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('working', 'done', 'aborted')),
    total INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    ended_at BIGINT,
    aborted_by TEXT COLLATE "C",
    PRIMARY KEY (city_id, id)
);

CREATE TABLE bulk_items (
    city_id TEXT COLLATE "C" NOT NULL,
    bulk_id TEXT COLLATE "C" NOT NULL,
    number INTEGER NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (outcome IN ('waiting', 'done', 'refused')),
    reason TEXT COLLATE "C" NOT NULL DEFAULT '',
    made TEXT COLLATE "C",
    at BIGINT,
    PRIMARY KEY (city_id, bulk_id, number),
    FOREIGN KEY (city_id, bulk_id) REFERENCES bulk_actions (city_id, id) ON DELETE CASCADE
);

-- The bulk action that caused the change, if one did.
ALTER TABLE audit ADD COLUMN bulk TEXT COLLATE "C";


-- oldest: 12
-- What a run asks a person, the run that goes on with its work, and the run whose work it goes on with. A program of the
-- schema before this one would take a run that goes on for one that stands in the way.
ALTER TABLE runs ADD COLUMN question TEXT;
ALTER TABLE runs ADD COLUMN continued_by TEXT;
ALTER TABLE runs ADD COLUMN continues TEXT;
-- The block of ports it was given: the first and how many.
ALTER TABLE runs ADD COLUMN ports TEXT;

-- Messages to a run at work: they wait for its end, and the run that goes on with it is told them.
CREATE TABLE messages (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    text TEXT NOT NULL,
    sender TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    taken_by TEXT,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_of_run ON messages (city_id, run_id, sent_at, id);

-- What runs of an automation leave for those that come after; every version of it.
CREATE TABLE notes (
    city_id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    written_by TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, automation_id, version),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('messages', 'messages', '10000 10000 1'),
    ('messages', 'messages_of_run', '10000 10000 2 1 1'),
    ('notes', 'notes', '10000 10000 50 1');
ANALYZE sqlite_schema;

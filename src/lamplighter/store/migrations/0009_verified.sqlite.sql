-- oldest: 9
-- How sure it is that a run succeeded, the round it is in, and the completion whose claim is being verified. A program
-- of the schema before this one would take a claim for the end.
ALTER TABLE runs ADD COLUMN grade TEXT;
ALTER TABLE runs ADD COLUMN round INTEGER NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN pending TEXT;

-- Each time a run claimed its success, and what the verification said of it.
CREATE TABLE rounds (
    city_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    completion_id TEXT NOT NULL,
    completion TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    judged_at INTEGER,
    passed INTEGER,
    exit_code INTEGER,
    why TEXT NOT NULL DEFAULT '',
    output_tail TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (city_id, run_id, number)
) STRICT, WITHOUT ROWID;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('rounds', 'rounds', '10000 10000 2 1');
ANALYZE sqlite_schema;

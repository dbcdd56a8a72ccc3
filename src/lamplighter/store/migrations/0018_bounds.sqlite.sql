-- oldest: 17
-- What agent runs used on each day of the city's zone, as their programs told it: budgets of a day add it up.
CREATE TABLE run_days (
    city_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    day TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (city_id, run_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_days_by_day ON run_days (city_id, day, automation_id);
-- The agent runs that were at work since midnight and have ended.
CREATE INDEX runs_worked ON runs (city_id, ended_at) WHERE action = 'agent' AND started_at IS NOT NULL;

-- Locked by whoever counts the runs at work before it starts one.
CREATE TABLE start_gates (
    city_id TEXT NOT NULL,
    PRIMARY KEY (city_id)
) STRICT, WITHOUT ROWID;

-- Up to where the runs of an automation have seen what they look at.
CREATE TABLE cursors (
    city_id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    version INTEGER NOT NULL,
    written_by TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, automation_id),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- The conversation that a value of a trigger's payload goes on with: a run of it.
CREATE TABLE conversations (
    city_id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    PRIMARY KEY (city_id, automation_id, key),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_of_run ON conversations (city_id, run_id);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('run_days', 'run_days', '20000 20000 1 1'),
    ('run_days', 'run_days_by_day', '20000 20000 200 10'),
    ('runs', 'runs_worked', '20000 20000 1'),
    ('start_gates', 'start_gates', '1 1'),
    ('cursors', 'cursors', '1000 1000 1'),
    ('conversations', 'conversations', '10000 10000 100 1'),
    ('conversations', 'conversations_of_run', '10000 10000 1');
ANALYZE sqlite_schema;

-- oldest: 12
-- Ended runs by hour, automation, outcome and model: what cost, strips and charts read. A tick makes them from the events
-- of the ends; `rolled_up` is the last event that it has read.
CREATE TABLE run_rollups (
    city_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    automation TEXT NOT NULL,
    outcome TEXT NOT NULL,
    model TEXT NOT NULL,
    runs INTEGER NOT NULL,
    agent_runs INTEGER NOT NULL,
    told INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    cost REAL NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (city_id, hour, automation, outcome, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_rollups_of ON run_rollups (city_id, automation, hour);
ALTER TABLE cities ADD COLUMN rolled_up INTEGER NOT NULL DEFAULT 0;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('run_rollups', 'run_rollups', '50000 50000 20 2 1 1'),
    ('run_rollups', 'run_rollups_of', '50000 50000 500 2');
ANALYZE sqlite_schema;

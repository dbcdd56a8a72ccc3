-- oldest: 12
-- Ended runs by hour, automation, outcome and model: what cost, strips and charts read. A tick makes them from the events
-- of the ends; `rolled_up` is the last event that it has read.
CREATE TABLE run_rollups (
    city_id TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    automation TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    runs BIGINT NOT NULL,
    agent_runs BIGINT NOT NULL,
    told BIGINT NOT NULL,
    duration_us BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    tokens BIGINT NOT NULL,
    PRIMARY KEY (city_id, hour, automation, outcome, model)
);
CREATE INDEX run_rollups_of ON run_rollups (city_id, automation, hour);
ALTER TABLE cities ADD COLUMN rolled_up BIGINT NOT NULL DEFAULT 0;

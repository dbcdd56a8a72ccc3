-- oldest: 17
-- What agent runs used on each day of the city's zone, as their programs told it: budgets of a day add it up.
CREATE TABLE run_days (
    city_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    automation_id TEXT COLLATE "C" NOT NULL,
    tokens BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (city_id, run_id, day)
);
CREATE INDEX run_days_by_day ON run_days (city_id, day, automation_id);
-- The agent runs that were at work since midnight and have ended.
CREATE INDEX runs_worked ON runs (city_id, ended_at) WHERE action = 'agent' AND started_at IS NOT NULL;

-- Locked by whoever counts the runs at work before it starts one.
CREATE TABLE start_gates (
    city_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (city_id)
);

-- Up to where the runs of an automation have seen what they look at.
CREATE TABLE cursors (
    city_id TEXT COLLATE "C" NOT NULL,
    automation_id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    version BIGINT NOT NULL,
    written_by TEXT NOT NULL,
    written_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, automation_id),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
);

-- The conversation that a value of a trigger's payload goes on with: a run of it.
CREATE TABLE conversations (
    city_id TEXT COLLATE "C" NOT NULL,
    automation_id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (city_id, automation_id, key),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
);
CREATE INDEX conversations_of_run ON conversations (city_id, run_id);

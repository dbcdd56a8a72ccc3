-- oldest: 1
CREATE TABLE sessions (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C",
    run_id TEXT COLLATE "C",
    provider TEXT NOT NULL DEFAULT '',
    node TEXT NOT NULL DEFAULT '',
    pid BIGINT,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    exit_status BIGINT,
    end_reason TEXT,
    output_tail TEXT,
    PRIMARY KEY (city_id, id)
);
CREATE INDEX sessions_by_age ON sessions (city_id, started_at, id);
CREATE INDEX sessions_of_agent ON sessions (city_id, agent, started_at) WHERE agent IS NOT NULL;
CREATE INDEX sessions_of_run ON sessions (city_id, run_id) WHERE run_id IS NOT NULL;

CREATE TABLE agent_starts (
    city_id TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    started_at BIGINT NOT NULL,
    reason TEXT NOT NULL,
    failure TEXT,
    counted BIGINT NOT NULL,
    ended_at BIGINT,
    wished BIGINT NOT NULL DEFAULT 0,
    exit_status BIGINT,
    end_reason TEXT,
    PRIMARY KEY (city_id, session, id)
);
CREATE INDEX agent_starts_by_age ON agent_starts (city_id, started_at);
CREATE INDEX agent_starts_open ON agent_starts (city_id, session) WHERE ended_at IS NULL;

CREATE TABLE agent_notes (
    city_id TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    crash_noted TEXT NOT NULL DEFAULT '',
    quarantine_noted BIGINT,
    PRIMARY KEY (city_id, session)
);

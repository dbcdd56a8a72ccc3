-- oldest: 1
CREATE TABLE sessions (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    agent TEXT,
    run_id TEXT,
    provider TEXT NOT NULL DEFAULT '',
    node TEXT NOT NULL DEFAULT '',
    pid INTEGER,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    exit_status INTEGER,
    end_reason TEXT,
    output_tail TEXT,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_age ON sessions (city_id, started_at, id);
CREATE INDEX sessions_of_agent ON sessions (city_id, agent, started_at) WHERE agent IS NOT NULL;
CREATE INDEX sessions_of_run ON sessions (city_id, run_id) WHERE run_id IS NOT NULL;

CREATE TABLE agent_starts (
    city_id TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    session_id TEXT NOT NULL DEFAULT '',
    started_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    failure TEXT,
    counted INTEGER NOT NULL,
    ended_at INTEGER,
    wished INTEGER NOT NULL DEFAULT 0,
    exit_status INTEGER,
    end_reason TEXT,
    PRIMARY KEY (city_id, session, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_starts_by_age ON agent_starts (city_id, started_at);
CREATE INDEX agent_starts_open ON agent_starts (city_id, session) WHERE ended_at IS NULL;

CREATE TABLE agent_notes (
    city_id TEXT NOT NULL,
    session TEXT NOT NULL,
    crash_noted TEXT NOT NULL DEFAULT '',
    quarantine_noted INTEGER,
    PRIMARY KEY (city_id, session)
) STRICT, WITHOUT ROWID;

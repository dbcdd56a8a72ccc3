-- oldest: 4
ALTER TABLE runs ADD COLUMN configuration TEXT;
ALTER TABLE runs ADD COLUMN prompt_sent_at INTEGER;
ALTER TABLE runs ADD COLUMN tokens INTEGER;
ALTER TABLE runs ADD COLUMN worktree TEXT;
ALTER TABLE runs ADD COLUMN enrichment TEXT;
ALTER TABLE runs ADD COLUMN completion TEXT;
CREATE INDEX runs_with_worktree ON runs (city_id, id) WHERE worktree IS NOT NULL;

ALTER TABLE sessions ADD COLUMN program_session TEXT;
ALTER TABLE sessions ADD COLUMN outcome TEXT;
ALTER TABLE sessions ADD COLUMN summary TEXT;
ALTER TABLE sessions ADD COLUMN output_position INTEGER NOT NULL DEFAULT 0;

CREATE TABLE session_events (
    city_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (city_id, session_id, number),
    FOREIGN KEY (city_id, session_id) REFERENCES sessions (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE side_effects (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    run_id TEXT,
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'done')),
    tries INTEGER NOT NULL,
    doubts INTEGER NOT NULL,
    result TEXT NOT NULL DEFAULT '{}',
    intended_at INTEGER NOT NULL,
    done_at INTEGER,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX side_effects_of_run ON side_effects (city_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX side_effects_by_age ON side_effects (city_id, intended_at);

CREATE TABLE artifacts (
    city_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    size INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, run_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_age ON artifacts (city_id, written_at);

CREATE TABLE configurations (
    city_id TEXT NOT NULL,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    body TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, name)
) STRICT, WITHOUT ROWID;

-- oldest: 4
ALTER TABLE runs ADD COLUMN configuration TEXT;
ALTER TABLE runs ADD COLUMN prompt_sent_at BIGINT;
ALTER TABLE runs ADD COLUMN tokens BIGINT;
ALTER TABLE runs ADD COLUMN worktree TEXT;
ALTER TABLE runs ADD COLUMN enrichment TEXT;
ALTER TABLE runs ADD COLUMN completion TEXT;
CREATE INDEX runs_with_worktree ON runs (city_id, id) WHERE worktree IS NOT NULL;

ALTER TABLE sessions ADD COLUMN program_session TEXT;
ALTER TABLE sessions ADD COLUMN outcome TEXT;
ALTER TABLE sessions ADD COLUMN summary TEXT;
ALTER TABLE sessions ADD COLUMN output_position BIGINT NOT NULL DEFAULT 0;

CREATE TABLE session_events (
    city_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (city_id, session_id, number),
    FOREIGN KEY (city_id, session_id) REFERENCES sessions (city_id, id) ON DELETE CASCADE
);

CREATE TABLE side_effects (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C",
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'done')),
    tries BIGINT NOT NULL,
    doubts BIGINT NOT NULL,
    result TEXT NOT NULL DEFAULT '{}',
    intended_at BIGINT NOT NULL,
    done_at BIGINT,
    PRIMARY KEY (city_id, id)
);
CREATE INDEX side_effects_of_run ON side_effects (city_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX side_effects_by_age ON side_effects (city_id, intended_at);

CREATE TABLE artifacts (
    city_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    key TEXT NOT NULL,
    size BIGINT NOT NULL,
    content_type TEXT NOT NULL,
    written_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, run_id, name)
);
CREATE INDEX artifacts_by_age ON artifacts (city_id, written_at);

CREATE TABLE configurations (
    city_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    source TEXT NOT NULL,
    body TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, name)
);

-- oldest: 2
ALTER TABLE cities ADD COLUMN paused_at BIGINT;
ALTER TABLE cities ADD COLUMN paused_by TEXT;
ALTER TABLE cities ADD COLUMN events_scanned BIGINT NOT NULL DEFAULT 0;

CREATE TABLE automations (
    id TEXT COLLATE "C" NOT NULL,
    city_id TEXT COLLATE "C" NOT NULL,
    scoped_name TEXT COLLATE "C" NOT NULL,
    name TEXT NOT NULL,
    rig TEXT,
    source TEXT NOT NULL,
    path TEXT,
    definition TEXT,
    problems TEXT NOT NULL DEFAULT '[]',
    version INTEGER NOT NULL DEFAULT 1,
    enabled INTEGER NOT NULL,
    left_out INTEGER NOT NULL DEFAULT 0,
    suspended INTEGER NOT NULL DEFAULT 0,
    disabled_reason TEXT NOT NULL DEFAULT '',
    failures INTEGER NOT NULL DEFAULT 0,
    armed_at BIGINT NOT NULL,
    quiet_at BIGINT,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, id),
    UNIQUE (city_id, scoped_name)
);
CREATE INDEX automations_quiet ON automations (city_id, quiet_at) WHERE quiet_at IS NOT NULL;

CREATE TABLE triggers (
    city_id TEXT COLLATE "C" NOT NULL,
    automation_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    position INTEGER NOT NULL,
    armed INTEGER NOT NULL,
    registered_at BIGINT NOT NULL,
    next_due_at BIGINT,
    last_fired_at BIGINT,
    last_slot TEXT,
    event_key TEXT COLLATE "C",
    event_cursor BIGINT NOT NULL DEFAULT 0,
    held_by TEXT COLLATE "C",
    last_skip TEXT COLLATE "C",
    checked_at BIGINT,
    check_result TEXT,
    zone TEXT,
    PRIMARY KEY (city_id, automation_id, id),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
);
CREATE INDEX triggers_due ON triggers (city_id, next_due_at)
    WHERE armed = 1 AND next_due_at IS NOT NULL AND held_by IS NULL;
CREATE INDEX triggers_by_event ON triggers (city_id, event_key) WHERE event_key IS NOT NULL AND armed = 1;
CREATE INDEX triggers_checked ON triggers (city_id, automation_id, id) WHERE kind = 'condition' AND armed = 1;

CREATE TABLE trigger_events (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    automation_id TEXT COLLATE "C" NOT NULL,
    automation TEXT COLLATE "C" NOT NULL,
    trigger_id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('fired', 'skipped', 'filtered', 'duplicate', 'completed', 'failed')),
    reason TEXT NOT NULL DEFAULT '',
    slot TEXT,
    dedup_key TEXT COLLATE "C",
    payload TEXT,
    run_id TEXT COLLATE "C",
    count INTEGER NOT NULL DEFAULT 1,
    due_at BIGINT,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, id)
);
CREATE UNIQUE INDEX trigger_events_once ON trigger_events (city_id, automation_id, trigger_id, dedup_key)
    WHERE dedup_key IS NOT NULL;
CREATE INDEX trigger_events_of ON trigger_events (city_id, automation, id);

CREATE TABLE runs (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    automation_id TEXT COLLATE "C" NOT NULL,
    automation TEXT COLLATE "C" NOT NULL,
    rig TEXT,
    action TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    stage TEXT,
    error TEXT NOT NULL DEFAULT '',
    trigger_id TEXT NOT NULL,
    trigger_kind TEXT NOT NULL,
    trigger_event_id TEXT COLLATE "C",
    definition TEXT NOT NULL,
    lease_version INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT COLLATE "C",
    lease_expires_at BIGINT,
    attempt INTEGER NOT NULL DEFAULT 0,
    retry_of TEXT COLLATE "C",
    causes TEXT NOT NULL DEFAULT '[]',
    node TEXT,
    bead_id TEXT COLLATE "C",
    wisp_id TEXT COLLATE "C",
    wisp_elsewhere INTEGER NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    deadline_at BIGINT,
    last_activity_at BIGINT,
    exit_code INTEGER,
    duration_us BIGINT,
    output_tail TEXT NOT NULL DEFAULT '',
    summary TEXT NOT NULL DEFAULT '',
    session_id TEXT,
    completion_id TEXT,
    assigned_to TEXT,
    assigned_at BIGINT,
    cost DOUBLE PRECISION,
    PRIMARY KEY (city_id, id)
);
CREATE UNIQUE INDEX runs_once ON runs (city_id, trigger_event_id) WHERE trigger_event_id IS NOT NULL AND retry_of IS NULL;
CREATE INDEX runs_active ON runs (city_id, automation_id, deadline_at)
    WHERE state IN ('queued', 'enriching', 'ready', 'running');
CREATE INDEX runs_of ON runs (city_id, automation, id);
CREATE INDEX runs_by_state ON runs (city_id, state, id);
CREATE INDEX runs_leased ON runs (city_id, lease_owner) WHERE lease_owner IS NOT NULL;

CREATE TABLE run_events (
    city_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    number INTEGER NOT NULL,
    at BIGINT NOT NULL,
    type TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT,
    actor TEXT NOT NULL,
    data TEXT,
    PRIMARY KEY (city_id, run_id, number),
    FOREIGN KEY (city_id, run_id) REFERENCES runs (city_id, id) ON DELETE CASCADE
);

CREATE TABLE outbox (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    run_id TEXT COLLATE "C",
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'done', 'failed')),
    due_at BIGINT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    recoveries INTEGER NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    claimed_by TEXT COLLATE "C",
    claimed_at BIGINT,
    last_error TEXT NOT NULL DEFAULT '',
    settled_at BIGINT,
    PRIMARY KEY (city_id, id)
);
CREATE INDEX outbox_due ON outbox (city_id, due_at, id) WHERE state = 'pending';
CREATE INDEX outbox_claimed ON outbox (city_id, claimed_by) WHERE state = 'claimed';

-- oldest: 2
ALTER TABLE cities ADD COLUMN paused_at INTEGER;
ALTER TABLE cities ADD COLUMN paused_by TEXT;
ALTER TABLE cities ADD COLUMN events_scanned INTEGER NOT NULL DEFAULT 0;

CREATE TABLE automations (
    id TEXT NOT NULL,
    city_id TEXT NOT NULL,
    scoped_name TEXT NOT NULL,
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
    armed_at INTEGER NOT NULL,
    quiet_at INTEGER,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, id),
    UNIQUE (city_id, scoped_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX automations_quiet ON automations (city_id, quiet_at) WHERE quiet_at IS NOT NULL;

CREATE TABLE triggers (
    city_id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    position INTEGER NOT NULL,
    armed INTEGER NOT NULL,
    registered_at INTEGER NOT NULL,
    next_due_at INTEGER,
    last_fired_at INTEGER,
    last_slot TEXT,
    event_key TEXT,
    event_cursor INTEGER NOT NULL DEFAULT 0,
    held_by TEXT,
    last_skip TEXT,
    checked_at INTEGER,
    check_result TEXT,
    zone TEXT,
    PRIMARY KEY (city_id, automation_id, id),
    FOREIGN KEY (city_id, automation_id) REFERENCES automations (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX triggers_due ON triggers (city_id, next_due_at)
    WHERE armed = 1 AND next_due_at IS NOT NULL AND held_by IS NULL;
CREATE INDEX triggers_by_event ON triggers (city_id, event_key) WHERE event_key IS NOT NULL AND armed = 1;
CREATE INDEX triggers_checked ON triggers (city_id, automation_id, id) WHERE kind = 'condition' AND armed = 1;

CREATE TABLE trigger_events (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    automation TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('fired', 'skipped', 'filtered', 'duplicate', 'completed', 'failed')),
    reason TEXT NOT NULL DEFAULT '',
    slot TEXT,
    dedup_key TEXT,
    payload TEXT,
    run_id TEXT,
    count INTEGER NOT NULL DEFAULT 1,
    due_at INTEGER,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX trigger_events_once ON trigger_events (city_id, automation_id, trigger_id, dedup_key)
    WHERE dedup_key IS NOT NULL;
CREATE INDEX trigger_events_of ON trigger_events (city_id, automation, id);

CREATE TABLE runs (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    automation TEXT NOT NULL,
    rig TEXT,
    action TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    stage TEXT,
    error TEXT NOT NULL DEFAULT '',
    trigger_id TEXT NOT NULL,
    trigger_kind TEXT NOT NULL,
    trigger_event_id TEXT,
    definition TEXT NOT NULL,
    lease_version INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_expires_at INTEGER,
    attempt INTEGER NOT NULL DEFAULT 0,
    retry_of TEXT,
    causes TEXT NOT NULL DEFAULT '[]',
    node TEXT,
    bead_id TEXT,
    wisp_id TEXT,
    wisp_elsewhere INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    deadline_at INTEGER,
    last_activity_at INTEGER,
    exit_code INTEGER,
    duration_us INTEGER,
    output_tail TEXT NOT NULL DEFAULT '',
    summary TEXT NOT NULL DEFAULT '',
    session_id TEXT,
    completion_id TEXT,
    assigned_to TEXT,
    assigned_at INTEGER,
    cost REAL,
    PRIMARY KEY (city_id, id)
) STRICT;
CREATE UNIQUE INDEX runs_once ON runs (city_id, trigger_event_id) WHERE trigger_event_id IS NOT NULL AND retry_of IS NULL;
CREATE INDEX runs_active ON runs (city_id, automation_id, deadline_at)
    WHERE state IN ('queued', 'enriching', 'ready', 'running');
CREATE INDEX runs_of ON runs (city_id, automation, id);
CREATE INDEX runs_by_state ON runs (city_id, state, id);
CREATE INDEX runs_leased ON runs (city_id, lease_owner) WHERE lease_owner IS NOT NULL;

CREATE TABLE run_events (
    city_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT,
    actor TEXT NOT NULL,
    data TEXT,
    PRIMARY KEY (city_id, run_id, number),
    FOREIGN KEY (city_id, run_id) REFERENCES runs (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    run_id TEXT,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'done', 'failed')),
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    recoveries INTEGER NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    claimed_by TEXT,
    claimed_at INTEGER,
    last_error TEXT NOT NULL DEFAULT '',
    settled_at INTEGER,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (city_id, due_at, id) WHERE state = 'pending';
CREATE INDEX outbox_claimed ON outbox (city_id, claimed_by) WHERE state = 'claimed';

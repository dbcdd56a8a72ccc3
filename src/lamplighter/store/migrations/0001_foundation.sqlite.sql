-- oldest: 1
CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE cities (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    controller TEXT,
    controller_since INTEGER,
    controller_version INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE owners (
    id TEXT PRIMARY KEY,
    city_id TEXT NOT NULL REFERENCES cities (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started_at INTEGER NOT NULL
) STRICT;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    city_id TEXT NOT NULL,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    subject TEXT,
    message TEXT,
    payload TEXT,
    run_id TEXT
) STRICT;
CREATE INDEX events_of_type ON events (city_id, type, seq);

CREATE TABLE beads (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'in_progress', 'closed')),
    assignee TEXT,
    sender TEXT,
    parent_id TEXT,
    root_id TEXT NOT NULL,
    ref TEXT,
    description TEXT NOT NULL DEFAULT '',
    metadata TEXT NOT NULL DEFAULT '{}',
    ephemeral INTEGER NOT NULL DEFAULT 0,
    run_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    closed_at INTEGER,
    PRIMARY KEY (city_id, id),
    FOREIGN KEY (city_id, parent_id) REFERENCES beads (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX beads_by_age ON beads (city_id, created_at, id);
CREATE INDEX beads_by_status ON beads (city_id, status, created_at, id);
CREATE INDEX beads_by_parent ON beads (city_id, parent_id, created_at, id) WHERE parent_id IS NOT NULL;
CREATE INDEX beads_by_root ON beads (city_id, root_id);
CREATE INDEX beads_by_assignee ON beads (city_id, assignee, status) WHERE assignee IS NOT NULL;
CREATE INDEX beads_to_collect ON beads (city_id, closed_at) WHERE ephemeral = 1 AND closed_at IS NOT NULL;

CREATE TABLE bead_labels (
    city_id TEXT NOT NULL,
    bead_id TEXT NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (city_id, bead_id, label),
    FOREIGN KEY (city_id, bead_id) REFERENCES beads (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX bead_labels_by_label ON bead_labels (city_id, label, bead_id);

CREATE TABLE bead_needs (
    city_id TEXT NOT NULL,
    bead_id TEXT NOT NULL,
    needs_id TEXT NOT NULL,
    PRIMARY KEY (city_id, bead_id, needs_id),
    FOREIGN KEY (city_id, bead_id) REFERENCES beads (city_id, id) ON DELETE CASCADE,
    FOREIGN KEY (city_id, needs_id) REFERENCES beads (city_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX bead_needs_by_need ON bead_needs (city_id, needs_id);

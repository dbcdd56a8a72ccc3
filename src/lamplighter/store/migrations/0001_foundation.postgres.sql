-- oldest: 1
CREATE TABLE organizations (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE cities (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    controller TEXT,
    controller_since BIGINT,
    controller_version INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE owners (
    id TEXT COLLATE "C" PRIMARY KEY,
    city_id TEXT COLLATE "C" NOT NULL REFERENCES cities (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started_at BIGINT NOT NULL
);

CREATE TABLE events (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq BIGINT UNIQUE,
    city_id TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    subject TEXT,
    message TEXT,
    payload TEXT,
    run_id TEXT
);
CREATE SEQUENCE events_seq;
CREATE INDEX events_of_city ON events (city_id, seq);
CREATE INDEX events_unnumbered ON events (id) WHERE seq IS NULL;
CREATE INDEX events_of_type ON events (city_id, type, seq);

CREATE TABLE beads (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'in_progress', 'closed')),
    assignee TEXT,
    sender TEXT,
    parent_id TEXT COLLATE "C",
    root_id TEXT COLLATE "C" NOT NULL,
    ref TEXT,
    description TEXT NOT NULL DEFAULT '',
    metadata TEXT NOT NULL DEFAULT '{}',
    ephemeral INTEGER NOT NULL DEFAULT 0,
    run_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    closed_at BIGINT,
    PRIMARY KEY (city_id, id),
    FOREIGN KEY (city_id, parent_id) REFERENCES beads (city_id, id)
);
CREATE INDEX beads_by_age ON beads (city_id, created_at, id);
CREATE INDEX beads_by_status ON beads (city_id, status, created_at, id);
CREATE INDEX beads_by_parent ON beads (city_id, parent_id, created_at, id) WHERE parent_id IS NOT NULL;
CREATE INDEX beads_by_root ON beads (city_id, root_id);
CREATE INDEX beads_by_assignee ON beads (city_id, assignee, status) WHERE assignee IS NOT NULL;
CREATE INDEX beads_to_collect ON beads (city_id, closed_at) WHERE ephemeral = 1 AND closed_at IS NOT NULL;

CREATE TABLE bead_labels (
    city_id TEXT COLLATE "C" NOT NULL,
    bead_id TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (city_id, bead_id, label),
    FOREIGN KEY (city_id, bead_id) REFERENCES beads (city_id, id) ON DELETE CASCADE
);
CREATE INDEX bead_labels_by_label ON bead_labels (city_id, label, bead_id);

CREATE TABLE bead_needs (
    city_id TEXT COLLATE "C" NOT NULL,
    bead_id TEXT COLLATE "C" NOT NULL,
    needs_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (city_id, bead_id, needs_id),
    FOREIGN KEY (city_id, bead_id) REFERENCES beads (city_id, id) ON DELETE CASCADE,
    FOREIGN KEY (city_id, needs_id) REFERENCES beads (city_id, id) ON DELETE CASCADE
);
CREATE INDEX bead_needs_by_need ON bead_needs (city_id, needs_id);

-- oldest: 5
ALTER TABLE owners ADD COLUMN node TEXT;
ALTER TABLE owners ADD COLUMN rigs TEXT NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN orphaned_at INTEGER;
ALTER TABLE outbox ADD COLUMN needs TEXT;

CREATE TABLE nodes (
    city_id TEXT NOT NULL,
    name TEXT NOT NULL,
    place TEXT NOT NULL,
    rigs TEXT NOT NULL DEFAULT '[]',
    state TEXT NOT NULL CHECK (state IN ('alive', 'stopped', 'lost')),
    since INTEGER NOT NULL,
    PRIMARY KEY (city_id, name)
) STRICT, WITHOUT ROWID;

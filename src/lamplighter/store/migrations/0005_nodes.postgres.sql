-- oldest: 5
ALTER TABLE owners ADD COLUMN node TEXT COLLATE "C";
ALTER TABLE owners ADD COLUMN rigs TEXT NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN orphaned_at BIGINT;
ALTER TABLE outbox ADD COLUMN needs TEXT COLLATE "C";

CREATE TABLE nodes (
    city_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    place TEXT NOT NULL,
    rigs TEXT NOT NULL DEFAULT '[]',
    state TEXT NOT NULL CHECK (state IN ('alive', 'stopped', 'lost')),
    since BIGINT NOT NULL,
    PRIMARY KEY (city_id, name)
);

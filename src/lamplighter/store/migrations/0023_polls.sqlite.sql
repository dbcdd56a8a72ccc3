-- oldest: 22
-- Connections that ask their provider what happened, because it cannot reach this city.
CREATE TABLE polls (
    city_id TEXT NOT NULL,
    connection TEXT NOT NULL,
    repo TEXT NOT NULL,
    url TEXT NOT NULL,
    token TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT '{}',
    next_at INTEGER NOT NULL,
    polled_at INTEGER,
    problem TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (city_id, connection),
    FOREIGN KEY (city_id, connection) REFERENCES connections (city_id, name) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
ALTER TABLE deliveries ADD COLUMN source TEXT NOT NULL DEFAULT 'webhook';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('polls', 'polls', '20 20 1');
ANALYZE sqlite_schema;

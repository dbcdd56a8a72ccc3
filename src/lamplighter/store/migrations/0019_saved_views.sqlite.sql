-- oldest: 17
-- Filters of runs that people keep under a name, for themselves or for everybody.
CREATE TABLE saved_views (
    city_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    is_shared INTEGER NOT NULL DEFAULT 0,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, owner, name)
) STRICT, WITHOUT ROWID;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('saved_views', 'saved_views', '200 200 5 1');
ANALYZE sqlite_schema;

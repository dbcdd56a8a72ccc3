-- oldest: 12
-- Values that only the city's key opens, by name; each row is bound to its city and its name.
CREATE TABLE secrets (
    city_id TEXT NOT NULL,
    name TEXT NOT NULL,
    key_id TEXT NOT NULL,
    nonce TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (city_id, name)
) STRICT, WITHOUT ROWID;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('secrets', 'secrets', '50 50 1');
ANALYZE sqlite_schema; -- has this connection read them; others read them with the schema

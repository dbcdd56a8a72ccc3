-- oldest: 12
-- Values that only the city's key opens, by name; each row is bound to its city and its name.
CREATE TABLE secrets (
    city_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    key_id TEXT NOT NULL,
    nonce TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (city_id, name)
);

-- oldest: 9
ALTER TABLE runs ADD COLUMN in_force TEXT;
ALTER TABLE runs ADD COLUMN lifts_at INTEGER;

CREATE TABLE logins (
    city_id TEXT NOT NULL,
    node TEXT NOT NULL,
    preset TEXT NOT NULL,
    home TEXT NOT NULL,
    account TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('works', 'login', 'provider_limit')),
    since INTEGER NOT NULL,
    until INTEGER,
    detail TEXT NOT NULL DEFAULT '',
    marks TEXT NOT NULL DEFAULT '',
    looked_at INTEGER,
    trying TEXT,
    trying_since INTEGER,
    configuration TEXT,
    PRIMARY KEY (city_id, node, preset, home, account, model)
) STRICT, WITHOUT ROWID;

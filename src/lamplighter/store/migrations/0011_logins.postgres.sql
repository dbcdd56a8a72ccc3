-- oldest: 9
ALTER TABLE runs ADD COLUMN in_force TEXT;
ALTER TABLE runs ADD COLUMN lifts_at BIGINT;

CREATE TABLE logins (
    city_id TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    preset TEXT COLLATE "C" NOT NULL,
    home TEXT COLLATE "C" NOT NULL,
    account TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('works', 'login', 'provider_limit')),
    since BIGINT NOT NULL,
    until BIGINT,
    detail TEXT NOT NULL DEFAULT '',
    marks TEXT NOT NULL DEFAULT '',
    looked_at BIGINT,
    trying TEXT,
    trying_since BIGINT,
    configuration TEXT,
    PRIMARY KEY (city_id, node, preset, home, account, model)
);

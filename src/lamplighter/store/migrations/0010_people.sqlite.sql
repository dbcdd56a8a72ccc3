-- oldest: 9
-- Answers kept under the key of a request, so that a repeated request has no second effect.
CREATE TABLE idempotency_keys (
    city_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    asked TEXT NOT NULL,
    answer TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (city_id, actor, operation, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (city_id, at);

-- The people of a city, and what each may.
CREATE TABLE members (
    city_id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    added_at INTEGER NOT NULL,
    added_by TEXT NOT NULL,
    PRIMARY KEY (city_id, name)
) STRICT, WITHOUT ROWID;

-- What programs show in the name of a member. The token itself is not kept, only its hash.
CREATE TABLE tokens (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    member TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    ending TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    used_at INTEGER,
    revoked_at INTEGER,
    PRIMARY KEY (city_id, id),
    FOREIGN KEY (city_id, member) REFERENCES members (city_id, name) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_by_hash ON tokens (city_id, hash);
CREATE INDEX tokens_of ON tokens (city_id, member, id);

-- Who changed what, written with the change.
CREATE TABLE audit (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    token TEXT,
    surface TEXT NOT NULL,
    operation TEXT NOT NULL,
    object TEXT,
    asked TEXT NOT NULL,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_of ON audit (city_id, actor, id);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('idempotency_keys', 'idempotency_keys', '10000 10000 1000 100 1'),
    ('idempotency_keys', 'idempotency_keys_by_age', '10000 10000 1'),
    ('members', 'members', '50 50 1'),
    ('tokens', 'tokens', '200 200 1'),
    ('tokens', 'tokens_by_hash', '200 200 1'),
    ('tokens', 'tokens_of', '200 200 4 1'),
    ('audit', 'audit', '100000 100000 1'),
    ('audit', 'audit_of', '100000 100000 2000 1');
ANALYZE sqlite_schema; -- has this connection read them

-- oldest: 9
-- Answers kept under the key of a request, so that a repeated request has no second effect.
CREATE TABLE idempotency_keys (
    city_id TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    asked TEXT NOT NULL,
    answer TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (city_id, actor, operation, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (city_id, at);

-- The people of a city, and what each may.
CREATE TABLE members (
    city_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    added_at BIGINT NOT NULL,
    added_by TEXT NOT NULL,
    PRIMARY KEY (city_id, name)
);

-- What programs show in the name of a member. The token itself is not kept, only its hash.
CREATE TABLE tokens (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    member TEXT COLLATE "C" NOT NULL,
    name TEXT NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    ending TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    used_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (city_id, id),
    FOREIGN KEY (city_id, member) REFERENCES members (city_id, name) ON DELETE CASCADE
);
CREATE UNIQUE INDEX tokens_by_hash ON tokens (city_id, hash);
CREATE INDEX tokens_of ON tokens (city_id, member, id);

-- Who changed what, written with the change.
CREATE TABLE audit (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    token TEXT,
    surface TEXT NOT NULL,
    operation TEXT NOT NULL,
    object TEXT,
    asked TEXT NOT NULL,
    PRIMARY KEY (city_id, id)
);
CREATE INDEX audit_of ON audit (city_id, actor, id);

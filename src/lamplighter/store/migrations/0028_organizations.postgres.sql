-- oldest: 28
-- Members and tokens belong to an organization, which may have several cities. Each city gets one of its own, with the
-- members and tokens it had. Programs of before would write them without an organization.
ALTER TABLE organizations ADD COLUMN home_city_id TEXT COLLATE "C" NOT NULL DEFAULT '';
INSERT INTO organizations (id, name, created_at, home_city_id)
SELECT 'org_' || replace(id, 'cty_', ''), name, created_at, id FROM cities;
UPDATE cities SET organization_id = 'org_' || replace(id, 'cty_', '');
DELETE FROM organizations WHERE id NOT IN (SELECT organization_id FROM cities);
CREATE INDEX cities_of_organization ON cities (organization_id, id);

CREATE TABLE kept_members AS SELECT c.organization_id, m.name, m.role, m.added_at, m.added_by
FROM members AS m JOIN cities AS c ON c.id = m.city_id;
CREATE TABLE kept_tokens AS SELECT c.organization_id, t.id, t.member, t.name, t.hash, t.ending, t.scopes, t.created_at,
    t.created_by, t.expires_at, t.used_at, t.revoked_at
FROM tokens AS t JOIN cities AS c ON c.id = t.city_id;
DROP TABLE tokens;
DROP TABLE members;
CREATE TABLE members (
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    added_at BIGINT NOT NULL,
    added_by TEXT NOT NULL,
    PRIMARY KEY (organization_id, name)
);
CREATE TABLE tokens (
    organization_id TEXT COLLATE "C" NOT NULL,
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
    PRIMARY KEY (organization_id, id),
    FOREIGN KEY (organization_id, member) REFERENCES members (organization_id, name) ON DELETE CASCADE
);
CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash, organization_id);
CREATE INDEX tokens_of ON tokens (organization_id, member, id);
INSERT INTO members (organization_id, name, role, added_at, added_by)
SELECT organization_id, name, role, added_at, added_by FROM kept_members;
INSERT INTO tokens (organization_id, id, member, name, hash, ending, scopes, created_at, created_by, expires_at,
    used_at, revoked_at)
SELECT organization_id, id, member, name, hash, ending, scopes, created_at, created_by, expires_at,
    used_at, revoked_at FROM kept_tokens;
DROP TABLE kept_tokens;
DROP TABLE kept_members;

-- Where a change of the organization was asked, if in another city of it than the one whose record this is.
ALTER TABLE audit ADD COLUMN asked_in TEXT;

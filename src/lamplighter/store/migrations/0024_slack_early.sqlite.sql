-- oldest: 22
-- Slack: replies that came before the mention that began their thread, and when each workspace was last reached.
CREATE TABLE slack_early (
    city_id TEXT NOT NULL,
    team TEXT NOT NULL,
    channel TEXT NOT NULL,
    thread TEXT NOT NULL,
    message TEXT NOT NULL,
    said TEXT NOT NULL,
    came_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, team, channel, thread, message)
) STRICT, WITHOUT ROWID;
-- `sockets` is how many were open at `looked_at`.
CREATE TABLE slack_contacts (
    city_id TEXT NOT NULL,
    team TEXT NOT NULL,
    heard_at INTEGER,
    sockets INTEGER NOT NULL,
    looked_at INTEGER,
    error TEXT NOT NULL,
    failed_at INTEGER,
    PRIMARY KEY (city_id, team)
) STRICT, WITHOUT ROWID;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('slack_early', 'slack_early', '20 20 20 10 5 1');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('slack_contacts', 'slack_contacts', '2 2 1');
ANALYZE sqlite_schema;

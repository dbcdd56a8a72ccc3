-- oldest: 17
-- What a destination answered and which of its answers were lost; destinations that said they are gone; who wants to be
-- told when a session ends.
ALTER TABLE notices ADD COLUMN doubts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notices ADD COLUMN answer TEXT NOT NULL DEFAULT '';
CREATE TABLE disabled_destinations (
    city_id TEXT NOT NULL,
    name TEXT NOT NULL,
    target TEXT NOT NULL,
    why TEXT NOT NULL,
    disabled_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE subscriptions (
    city_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    destination TEXT NOT NULL,
    subscriber TEXT NOT NULL,
    subscribed_at INTEGER NOT NULL,
    notice TEXT,
    notified_at INTEGER,
    PRIMARY KEY (city_id, subject, destination)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_of_notice ON subscriptions (city_id, notice) WHERE notice IS NOT NULL;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('disabled_destinations', 'disabled_destinations', '10 10 1'),
    ('subscriptions', 'subscriptions', '200 200 2 1'),
    ('subscriptions', 'subscriptions_of_notice', '100 100 1');
ANALYZE sqlite_schema;

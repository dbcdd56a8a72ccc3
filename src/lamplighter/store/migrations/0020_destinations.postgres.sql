-- oldest: 17
-- What a destination answered and which of its answers were lost; destinations that said they are gone; who wants to be
-- told when a session ends.
ALTER TABLE notices ADD COLUMN doubts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notices ADD COLUMN answer TEXT NOT NULL DEFAULT '';
CREATE TABLE disabled_destinations (
    city_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    target TEXT NOT NULL,
    why TEXT NOT NULL,
    disabled_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, name)
);
CREATE TABLE subscriptions (
    city_id TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    destination TEXT COLLATE "C" NOT NULL,
    subscriber TEXT NOT NULL,
    subscribed_at BIGINT NOT NULL,
    notice TEXT COLLATE "C",
    notified_at BIGINT,
    PRIMARY KEY (city_id, subject, destination)
);
CREATE INDEX subscriptions_of_notice ON subscriptions (city_id, notice) WHERE notice IS NOT NULL;

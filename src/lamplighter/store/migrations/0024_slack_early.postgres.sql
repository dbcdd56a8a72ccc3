-- oldest: 22
-- Slack: replies that came before the mention that began their thread, and when each workspace was last reached.
CREATE TABLE slack_early (
    city_id TEXT COLLATE "C" NOT NULL,
    team TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    message TEXT COLLATE "C" NOT NULL,
    said TEXT NOT NULL,
    came_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, team, channel, thread, message)
);
-- `sockets` is how many were open at `looked_at`.
CREATE TABLE slack_contacts (
    city_id TEXT COLLATE "C" NOT NULL,
    team TEXT COLLATE "C" NOT NULL,
    heard_at BIGINT,
    sockets INTEGER NOT NULL,
    looked_at BIGINT,
    error TEXT NOT NULL,
    failed_at BIGINT,
    PRIMARY KEY (city_id, team)
);

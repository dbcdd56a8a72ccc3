-- oldest: 22
-- Connections that ask their provider what happened, because it cannot reach this city.
CREATE TABLE polls (
    city_id TEXT COLLATE "C" NOT NULL,
    connection TEXT COLLATE "C" NOT NULL,
    repo TEXT NOT NULL,
    url TEXT NOT NULL,
    token TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT '{}',
    next_at BIGINT NOT NULL,
    polled_at BIGINT,
    problem TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (city_id, connection),
    FOREIGN KEY (city_id, connection) REFERENCES connections (city_id, name) ON DELETE CASCADE
);
ALTER TABLE deliveries ADD COLUMN source TEXT NOT NULL DEFAULT 'webhook';

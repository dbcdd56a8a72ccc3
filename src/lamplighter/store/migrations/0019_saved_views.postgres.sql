-- oldest: 17
-- Filters of runs that people keep under a name, for themselves or for everybody.
CREATE TABLE saved_views (
    city_id TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    query TEXT NOT NULL,
    is_shared INTEGER NOT NULL DEFAULT 0,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, owner, name)
);

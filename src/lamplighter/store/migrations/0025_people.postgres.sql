-- oldest: 22
-- What each person has looked at and keeps on top: when they last looked at the start page, and before that; pinned
-- automations; the view they see first. Items may be snoozed until they recur, and are dismissed with a reason.
CREATE TABLE looks (
    city_id TEXT COLLATE "C" NOT NULL,
    person TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    before BIGINT,
    PRIMARY KEY (city_id, person)
);
CREATE TABLE pins (
    city_id TEXT COLLATE "C" NOT NULL,
    person TEXT COLLATE "C" NOT NULL,
    automation TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (city_id, person, automation)
);
ALTER TABLE saved_views ADD COLUMN is_first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbox_items ADD COLUMN snoozed_count BIGINT;
ALTER TABLE inbox_items ADD COLUMN settled_why TEXT NOT NULL DEFAULT '';

-- oldest: 22
-- What each person has looked at and keeps on top: when they last looked at the start page, and before that; pinned
-- automations; the view they see first. Items may be snoozed until they recur, and are dismissed with a reason.
CREATE TABLE looks (
    city_id TEXT NOT NULL,
    person TEXT NOT NULL,
    at INTEGER NOT NULL,
    before INTEGER,
    PRIMARY KEY (city_id, person)
) STRICT, WITHOUT ROWID;
CREATE TABLE pins (
    city_id TEXT NOT NULL,
    person TEXT NOT NULL,
    automation TEXT NOT NULL,
    PRIMARY KEY (city_id, person, automation)
) STRICT, WITHOUT ROWID;
ALTER TABLE saved_views ADD COLUMN is_first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbox_items ADD COLUMN snoozed_count INTEGER;
ALTER TABLE inbox_items ADD COLUMN settled_why TEXT NOT NULL DEFAULT '';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('looks', 'looks', '20 20 1'), ('pins', 'pins', '200 200 10 1');
ANALYZE sqlite_schema;

-- oldest: 17
-- Slack: its workspaces, who is who there, and the threads that are conversations.
CREATE TABLE slack_installations (
    city_id TEXT NOT NULL,
    team TEXT NOT NULL,
    name TEXT NOT NULL,
    bot_user TEXT NOT NULL,
    bot_id TEXT NOT NULL,
    preset TEXT NOT NULL,
    rig TEXT NOT NULL,
    mode TEXT NOT NULL,
    hears INTEGER NOT NULL,
    has_socket INTEGER NOT NULL,
    installed_at INTEGER NOT NULL,
    installed_by TEXT NOT NULL,
    PRIMARY KEY (city_id, team)
) STRICT, WITHOUT ROWID;
-- What Slack told, by its own id: it repeats what was not acknowledged in time.
CREATE TABLE slack_events (
    city_id TEXT NOT NULL,
    team TEXT NOT NULL,
    event TEXT NOT NULL,
    came_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, team, event)
) STRICT, WITHOUT ROWID;
-- The member behind a user of Slack; with a code and no member: who waits to be linked by it.
CREATE TABLE slack_people (
    city_id TEXT NOT NULL,
    team TEXT NOT NULL,
    person TEXT NOT NULL,
    member TEXT,
    how TEXT NOT NULL,
    code TEXT,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, team, person)
) STRICT, WITHOUT ROWID;
-- A thread and its conversation: `run` is the run that is being told there, `number` the last of its events that was.
CREATE TABLE slack_threads (
    city_id TEXT NOT NULL,
    id TEXT NOT NULL,
    team TEXT NOT NULL,
    channel TEXT NOT NULL,
    thread TEXT NOT NULL,
    started_by TEXT NOT NULL,
    others INTEGER NOT NULL,
    run TEXT NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    message TEXT NOT NULL,
    said TEXT NOT NULL,
    marked TEXT NOT NULL,
    is_followed INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (city_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX slack_threads_once ON slack_threads (city_id, team, channel, thread);
CREATE INDEX slack_threads_of_run ON slack_threads (city_id, run);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('slack_installations', 'slack_installations', '2 2 1');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('slack_events', 'slack_events', '10000 10000 10000 1');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('slack_people', 'slack_people', '100 100 100 1');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('slack_threads', 'slack_threads', '1000 1000 1');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('slack_threads', 'slack_threads_once', '1000 1000 1000 50 1');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('slack_threads', 'slack_threads_of_run', '1000 1000 1');
ANALYZE sqlite_schema;

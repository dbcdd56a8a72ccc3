-- oldest: 17
-- Slack: its workspaces, who is who there, and the threads that are conversations.
CREATE TABLE slack_installations (
    city_id TEXT COLLATE "C" NOT NULL,
    team TEXT COLLATE "C" NOT NULL,
    name TEXT NOT NULL,
    bot_user TEXT COLLATE "C" NOT NULL,
    bot_id TEXT COLLATE "C" NOT NULL,
    preset TEXT NOT NULL,
    rig TEXT NOT NULL,
    mode TEXT NOT NULL,
    hears INTEGER NOT NULL,
    has_socket INTEGER NOT NULL,
    installed_at BIGINT NOT NULL,
    installed_by TEXT NOT NULL,
    PRIMARY KEY (city_id, team)
);
-- What Slack told, by its own id: it repeats what was not acknowledged in time.
CREATE TABLE slack_events (
    city_id TEXT COLLATE "C" NOT NULL,
    team TEXT COLLATE "C" NOT NULL,
    event TEXT COLLATE "C" NOT NULL,
    came_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, team, event)
);
-- The member behind a user of Slack; with a code and no member: who waits to be linked by it.
CREATE TABLE slack_people (
    city_id TEXT COLLATE "C" NOT NULL,
    team TEXT COLLATE "C" NOT NULL,
    person TEXT COLLATE "C" NOT NULL,
    member TEXT COLLATE "C",
    how TEXT NOT NULL,
    code TEXT COLLATE "C",
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, team, person)
);
-- A thread and its conversation: `run` is the run that is being told there, `number` the last of its events that was.
CREATE TABLE slack_threads (
    city_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    team TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    started_by TEXT NOT NULL,
    others INTEGER NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    number INTEGER NOT NULL,
    message TEXT NOT NULL,
    said TEXT NOT NULL,
    marked TEXT NOT NULL,
    is_followed INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (city_id, id)
);
CREATE UNIQUE INDEX slack_threads_once ON slack_threads (city_id, team, channel, thread);
CREATE INDEX slack_threads_of_run ON slack_threads (city_id, run);

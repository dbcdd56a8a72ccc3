-- oldest: 5
-- Events of a run are numbered from one source: to count those a run has costs more than the row. They are shown as
-- first, second, third. A program of the schema before this one counts on by one: it never meets the next of these.
CREATE SEQUENCE run_events_number INCREMENT BY 1000;
SELECT setval('run_events_number', (SELECT coalesce(max(number), 0) + 1000 FROM run_events), false);
ALTER TABLE run_events ALTER COLUMN number TYPE BIGINT;
ALTER TABLE run_events ALTER COLUMN number SET DEFAULT nextval('run_events_number');

-- They are written together with their run or under its lock, and deleted with it: to look that up again for each of
-- them takes a lock on the run's row every time.
ALTER TABLE run_events DROP CONSTRAINT run_events_city_id_run_id_fkey;

-- Nearly all runs have succeeded and nearly all beads are closed: those are found by age. An end is then no new entry.
DROP INDEX runs_by_state;
CREATE INDEX runs_by_state ON runs (city_id, state, id) WHERE state <> 'succeeded';
DROP INDEX beads_by_status;
CREATE INDEX beads_by_status ON beads (city_id, status, created_at, id) WHERE status <> 'closed';

-- Where runs may overlap nobody waits for one to end, and nobody is told of it.
UPDATE triggers SET held_by = NULL
WHERE held_by IS NOT NULL AND held_by <> 'blocked'
    AND automation_id IN (SELECT id FROM automations WHERE definition LIKE '%"overlap": "allow"%');

-- Runs other than commands are few, and looked for by what they are.
CREATE INDEX runs_of_action ON runs (city_id, action, id) WHERE action <> 'exec';

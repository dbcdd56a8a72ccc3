-- oldest: 5
-- Where runs may overlap nobody waits for one to end, and nobody is told of it.
UPDATE triggers SET held_by = NULL
WHERE held_by IS NOT NULL AND held_by <> 'blocked'
    AND automation_id IN (SELECT id FROM automations WHERE definition LIKE '%"overlap": "allow"%');

-- Runs other than commands are few, and looked for by what they are.
CREATE INDEX runs_of_action ON runs (city_id, action, id) WHERE action <> 'exec';

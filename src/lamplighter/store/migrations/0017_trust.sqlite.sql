-- oldest: 17
-- Who approved the plan that a run carries out. A program of the schema before this one would let a run that is only to
-- plan do its work.
ALTER TABLE runs ADD COLUMN approved TEXT;

-- Who has taken a run over and since when, how long its clock has stood in all, and what it was told when it was given
-- back. A program of the schema before this one would set to work on a run that a person has taken.
ALTER TABLE runs ADD COLUMN taken_by TEXT;
ALTER TABLE runs ADD COLUMN taken_at INTEGER;
ALTER TABLE runs ADD COLUMN stood_us INTEGER;
ALTER TABLE runs ADD COLUMN given TEXT;

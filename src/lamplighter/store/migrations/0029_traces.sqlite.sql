-- oldest: 28
-- How far the ends of runs were reported as spans; empty where nobody reports them.
ALTER TABLE cities ADD COLUMN traced INTEGER;

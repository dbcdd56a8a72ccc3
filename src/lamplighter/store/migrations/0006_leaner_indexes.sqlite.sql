-- oldest: 5
-- Nothing is looked for by its root.
DROP INDEX beads_by_root;

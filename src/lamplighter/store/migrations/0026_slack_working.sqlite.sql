-- oldest: 22
-- Slack: where conversations of a workspace may work, what is shown in a thread beside what is said, and its follower.
ALTER TABLE slack_installations ADD COLUMN configurations TEXT NOT NULL DEFAULT '[]';
ALTER TABLE slack_threads ADD COLUMN doing TEXT NOT NULL DEFAULT '';
ALTER TABLE slack_threads ADD COLUMN follower TEXT NOT NULL DEFAULT '';

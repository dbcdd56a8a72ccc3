-- oldest: 30
-- Slack: answers that are streamed, what Slack says about that, the app's scopes, and how people are called there.
ALTER TABLE slack_threads ADD COLUMN stream TEXT NOT NULL DEFAULT '';
ALTER TABLE slack_contacts ADD COLUMN unstreamed TEXT NOT NULL DEFAULT '';
ALTER TABLE slack_contacts ADD COLUMN unstreamed_at BIGINT;
ALTER TABLE slack_installations ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE slack_people ADD COLUMN name TEXT NOT NULL DEFAULT '';

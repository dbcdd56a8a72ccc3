-- oldest: 27
-- Only on SQLite the rows of deliveries are laid out anew; here a body has been beside its keys from the start.
-- Outbox items name several deliveries, or open a thread in Slack: older programs would give them up.
SELECT 1;

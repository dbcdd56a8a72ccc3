-- oldest: 22
-- Only on SQLite the rows of deliveries are laid out anew; here a body has been beside its keys from the start.
SELECT 1;

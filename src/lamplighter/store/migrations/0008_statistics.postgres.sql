-- oldest: 5
-- PostgreSQL gathers its statistics by itself: this step is SQLite's.
SELECT 1;

"""What a program is told: names that do not exist, records of loggers, counters, and what is refused to `sqlite3`."""

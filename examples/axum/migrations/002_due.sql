ALTER TABLE tasks ADD COLUMN due TEXT CHECK (due IS date(due));

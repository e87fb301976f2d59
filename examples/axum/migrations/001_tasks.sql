CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL UNIQUE CHECK (title <> ''),
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done'))
) STRICT;

-- One user, by the name.
SELECT id, email FROM users WHERE name = :name;

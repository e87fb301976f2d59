ALTER TABLE users ADD COLUMN email TEXT;
CREATE INDEX users_email ON users (email);

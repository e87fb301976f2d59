CREATE VIEW user_totals AS
    SELECT u.id, u.name, count(o.id) AS orders, sum(o.total) AS total FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id;
CREATE VIEW paid AS SELECT id, user_id, total, note FROM orders WHERE status = 'paid';
CREATE VIEW both_texts AS SELECT t AS text FROM facts UNION ALL SELECT u FROM facts;
CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT NOT NULL, at TEXT) STRICT;
CREATE TRIGGER users_log AFTER INSERT ON users BEGIN INSERT INTO log (what) VALUES ('user ' || new.name); END;
CREATE TRIGGER paid_insert INSTEAD OF INSERT ON paid BEGIN
    INSERT INTO orders (user_id, status, total, note) VALUES (new.user_id, 'paid', new.total, new.note);
END;
CREATE VIRTUAL TABLE docs USING fts5 (title, body);
ALTER TABLE facts ADD COLUMN added INTEGER NOT NULL DEFAULT 7;
ALTER TABLE facts ADD COLUMN maybe TEXT;

-- name: GetUser :one
-- One user, by the number.
SELECT id, name, email, active, created_at FROM users WHERE id = :id;

-- name: FindUsers :many
SELECT id AS "id!", count(*) AS n FROM users WHERE name = ? OR email = ? GROUP BY id;

-- name: AddUser :execlastid
INSERT INTO users (name, email, born) VALUES (:name, :email, :born);

-- name: RenameUser :execrows
UPDATE users SET name = @name WHERE id = @id;

-- name: Clear :exec
DELETE FROM orders;

-- name: LastOrder :optional
SELECT id, total, note FROM orders WHERE user_id = ? ORDER BY id DESC LIMIT 1;

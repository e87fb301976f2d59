# Made by `flatwater types`. Changes are lost: change the SQL.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flatwater import Connection, Database, Snapshot, Transaction

    On = Database[Any, Any] | Transaction[Any, Any] | Snapshot[Any, Any] | Connection[Any, Any]


@dataclass(frozen=True, slots=True)
class GetUserRow:
    id: int
    name: str
    email: str | None
    active: int
    created_at: str


async def get_user(on: On, *, id: int) -> GetUserRow:
    """One user, by the number."""
    return GetUserRow(*(await on.query_one("SELECT id, name, email, active, created_at FROM users WHERE id = :id", {"id": id}, into=tuple)))


@dataclass(frozen=True, slots=True)
class FindUsersRow:
    id: int
    n: int


async def find_users(on: On, *, name: str, email: str) -> list[FindUsersRow]:
    return [FindUsersRow(*row) for row in await on.query("SELECT id AS \"id!\", count(*) AS n FROM users WHERE name = ? OR email = ? GROUP BY id", (name, email), into=tuple)]


async def add_user(on: On, *, name: str, email: str | None, born: str | None) -> int | None:
    return (await on.execute("INSERT INTO users (name, email, born) VALUES (:name, :email, :born)", {"name": name, "email": email, "born": born})).last_insert_rowid


async def rename_user(on: On, *, name: str, id: int) -> int:
    return (await on.execute("UPDATE users SET name = @name WHERE id = @id", {"name": name, "id": id})).changes


async def clear(on: On) -> None:
    await on.execute("DELETE FROM orders")


@dataclass(frozen=True, slots=True)
class LastOrderRow:
    id: int
    total: float
    note: str | None


async def last_order(on: On, *, user_id: int) -> LastOrderRow | None:
    row = await on.query_optional("SELECT id, total, note FROM orders WHERE user_id = ? ORDER BY id DESC LIMIT 1", (user_id,), into=tuple)
    return None if row is None else LastOrderRow(*row)

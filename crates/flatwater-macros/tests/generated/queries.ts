// Made by `flatwater types`. Changes are lost: change the SQL.

import type { Session } from "flatwater";

export interface GetUserRow {
  id: number;
  name: string;
  email: string | null;
  active: number;
  created_at: string;
}

/** One user, by the number. */
export async function getUser(on: Session, args: { id: number }): Promise<GetUserRow> {
  return on.queryOne<GetUserRow>("SELECT id, name, email, active, created_at FROM users WHERE id = :id", { id: args.id });
}

export interface FindUsersRow {
  id: number;
  n: number;
}

export async function findUsers(on: Session, args: { name: string; email: string }): Promise<FindUsersRow[]> {
  const rows = await on.query<Record<string, unknown>>("SELECT id AS \"id!\", count(*) AS n FROM users WHERE name = ? OR email = ? GROUP BY id", [args.name, args.email]);
  return rows.map((row) => ({ id: row["id!"], n: row["n"] }) as FindUsersRow);
}

export async function addUser(on: Session, args: { name: string; email: string | null; born: string | null }): Promise<number | bigint | null> {
  return (await on.execute("INSERT INTO users (name, email, born) VALUES (:name, :email, :born)", { name: args.name, email: args.email, born: args.born })).lastInsertRowid;
}

export async function renameUser(on: Session, args: { name: string; id: number }): Promise<number> {
  return (await on.execute("UPDATE users SET name = @name WHERE id = @id", { name: args.name, id: args.id })).changes;
}

export async function clear(on: Session): Promise<void> {
  await on.execute("DELETE FROM orders", undefined);
}

export interface LastOrderRow {
  id: number;
  total: number;
  note: string | null;
}

export async function lastOrder(on: Session, args: { user_id: number }): Promise<LastOrderRow | undefined> {
  return on.queryOptional<LastOrderRow>("SELECT id, total, note FROM orders WHERE user_id = ? ORDER BY id DESC LIMIT 1", [args.user_id]);
}

// Made by `flatwater types`. Changes are lost: change the SQL.

import type { Generated, GeneratedAlways } from "kysely";

export interface FactsTable {
  id: Generated<number>;
  n: number;
  m: number | null;
  r: number;
  s: number | null;
  t: string;
  u: string | null;
  b: Uint8Array;
  c: Uint8Array | null;
  a: number | string | Uint8Array | null;
  twice: GeneratedAlways<number | null>;
  shout: GeneratedAlways<string>;
}

export interface ItemsTable {
  order_id: number;
  line: number;
  product: string;
  quantity: number;
  price: number;
  discount: number | null;
}

export interface KeysDescTable {
  id: number | null;
  v: string | null;
}

export interface LooseTable {
  a: number | string | Uint8Array | null;
  b: number | null;
  c: string | null;
  d: number | string | null;
  e: number | string | Uint8Array | null;
  f: Uint8Array | null;
  g: number | null;
  h: number;
  i: string;
}

export interface NodesTable {
  id: Generated<number>;
  parent: number | null;
  title: string;
}

export interface OrdersTable {
  id: Generated<number>;
  user_id: number;
  status: string;
  total: Generated<number>;
  note: string | null;
  placed_at: string | null;
}

export interface PairsTable {
  k: string;
  v: number | null;
}

export interface UsersTable {
  id: Generated<number>;
  name: string;
  email: string | null;
  active: Generated<number>;
  born: string | null;
  created_at: Generated<string>;
  settings: string | null;
  score: number | null;
}

export interface Database {
  facts: FactsTable;
  items: ItemsTable;
  keys_desc: KeysDescTable;
  loose: LooseTable;
  nodes: NodesTable;
  orders: OrdersTable;
  pairs: PairsTable;
  users: UsersTable;
}

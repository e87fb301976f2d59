/**
 * The types of calls that take parameters and callbacks, as those of node-sqlite3.
 *
 * Owns: the forms of each call; `S` is the statement, `D` the database. Leaves out: what it does.
 */

type Failed = Error | null;
type OnDone<S> = (this: S, error: Failed) => void;
type OnRun<S> = (this: S & { lastID: number; changes: number }, error: Failed) => void;
type OnRow<S, T> = (this: S, error: Failed, row: T) => void;
type OnRows<S, T> = (this: S, error: Failed, rows: T[]) => void;
type OnCount<S> = (this: S, error: Failed, count: number) => void;

export interface StatementBind<S> {
  (callback?: OnDone<S>): S;
  (...params: any[]): S;
}

export interface StatementRun<S> {
  (callback?: OnRun<S>): S;
  (params: any, callback?: OnRun<S>): S;
  (...params: any[]): S;
}

export interface StatementGet<S> {
  <T>(callback?: OnRow<S, T | undefined>): S;
  <T>(params: any, callback?: OnRow<S, T | undefined>): S;
  (...params: any[]): S;
}

export interface StatementAll<S> {
  <T>(callback?: OnRows<S, T>): S;
  <T>(params: any, callback?: OnRows<S, T>): S;
  (...params: any[]): S;
}

export interface StatementEach<S> {
  <T>(callback?: OnRow<S, T>, complete?: OnCount<S>): S;
  <T>(params: any, callback?: OnRow<S, T>, complete?: OnCount<S>): S;
  (...params: any[]): S;
}

export interface DatabaseRun<D, S> {
  (sql: string, callback?: OnRun<S>): D;
  (sql: string, params: any, callback?: OnRun<S>): D;
  (sql: string, ...params: any[]): D;
}

export interface DatabaseGet<D, S> {
  <T>(sql: string, callback?: OnRow<S, T>): D;
  <T>(sql: string, params: any, callback?: OnRow<S, T>): D;
  (sql: string, ...params: any[]): D;
}

export interface DatabaseAll<D, S> {
  <T>(sql: string, callback?: OnRows<S, T>): D;
  <T>(sql: string, params: any, callback?: OnRows<S, T>): D;
  (sql: string, ...params: any[]): D;
}

export interface DatabaseEach<D, S> {
  <T>(sql: string, callback?: OnRow<S, T>, complete?: OnCount<S>): D;
  <T>(sql: string, params: any, callback?: OnRow<S, T>, complete?: OnCount<S>): D;
  (sql: string, ...params: any[]): D;
}

export interface DatabasePrepare<S> {
  (sql: string, callback?: OnDone<S>): S;
  (sql: string, params: any, callback?: OnDone<S>): S;
  (sql: string, ...params: any[]): S;
}

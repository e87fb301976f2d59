/**
 * Values and errors, from those of Prisma to those of this package, and back.
 *
 * Owns: what Prisma takes a column for, by the type in its table's definition or by its first value; the kinds of its errors. What is
 * stored for a value is what Prisma's own adapters for SQLite store. Leaves out: running statements.
 */

import {
  ColumnTypeEnum,
  DriverAdapterError,
  type ArgType,
  type ColumnType,
  type MappedError,
} from "@prisma/driver-adapter-utils";
import { FlatwaterError } from "./errors.js";
import type { Table } from "./rows.js";
import type { SqlValue } from "./sql.js";

/** How a `DateTime` is stored: as text in the form of ISO 8601, which is the default, or as the milliseconds since 1970. */
export type TimestampFormat = "iso8601" | "unixepoch-ms";

const DECLARED: Record<string, ColumnType> = {
  DECIMAL: ColumnTypeEnum.Numeric,
  FLOAT: ColumnTypeEnum.Float,
  DOUBLE: ColumnTypeEnum.Double,
  "DOUBLE PRECISION": ColumnTypeEnum.Double,
  NUMERIC: ColumnTypeEnum.Double,
  REAL: ColumnTypeEnum.Double,
  TINYINT: ColumnTypeEnum.Int32,
  SMALLINT: ColumnTypeEnum.Int32,
  MEDIUMINT: ColumnTypeEnum.Int32,
  INT: ColumnTypeEnum.Int32,
  INTEGER: ColumnTypeEnum.Int32,
  SERIAL: ColumnTypeEnum.Int32,
  INT2: ColumnTypeEnum.Int32,
  BIGINT: ColumnTypeEnum.Int64,
  "UNSIGNED BIG INT": ColumnTypeEnum.Int64,
  INT8: ColumnTypeEnum.Int64,
  DATETIME: ColumnTypeEnum.DateTime,
  TIMESTAMP: ColumnTypeEnum.DateTime,
  TIME: ColumnTypeEnum.Time,
  DATE: ColumnTypeEnum.Date,
  TEXT: ColumnTypeEnum.Text,
  CLOB: ColumnTypeEnum.Text,
  CHARACTER: ColumnTypeEnum.Text,
  VARCHAR: ColumnTypeEnum.Text,
  "VARYING CHARACTER": ColumnTypeEnum.Text,
  NCHAR: ColumnTypeEnum.Text,
  "NATIVE CHARACTER": ColumnTypeEnum.Text,
  NVARCHAR: ColumnTypeEnum.Text,
  BLOB: ColumnTypeEnum.Bytes,
  BOOLEAN: ColumnTypeEnum.Boolean,
  JSONB: ColumnTypeEnum.Json,
};

/** What each column is. */
export function typesOf({ declaredTypes, rows }: Table): ColumnType[] {
  return declaredTypes.map((declared, at) => {
    const known = DECLARED[declared.toUpperCase()];
    // Of an expression the first value says it.
    return known ?? typeOf(rows.find((row) => row[at] !== null)?.[at]);
  });
}

function typeOf(value: unknown): ColumnType {
  switch (typeof value) {
    case "string":
      return ColumnTypeEnum.Text;
    case "bigint":
      return ColumnTypeEnum.Int64;
    case "number":
      return ColumnTypeEnum.UnknownNumber;
    case "object":
      return ColumnTypeEnum.Bytes;
    default:
      return ColumnTypeEnum.Int32;
  }
}

/** A value as Prisma takes it from a column of this type. */
export function valueFor(type: ColumnType, value: unknown): unknown {
  if (typeof value !== "number" && typeof value !== "bigint") {
    return value;
  }
  if (type === ColumnTypeEnum.DateTime) {
    return new Date(Number(value)).toISOString();
  }
  if (typeof value === "bigint") {
    return value.toString();
  }
  return type === ColumnTypeEnum.Int32 || type === ColumnTypeEnum.Int64 ? Math.trunc(value) : value;
}

/** An argument of Prisma as it is stored. */
export function argumentOf(given: unknown, type: ArgType | undefined, format: TimestampFormat): SqlValue {
  if (typeof given === "string") {
    switch (type?.scalarType) {
      case "int":
        return Number.parseInt(given, 10);
      case "float":
      case "decimal":
        return Number.parseFloat(given);
      case "bigint":
        return BigInt(given);
      case "datetime":
        return timestamp(new Date(given), format);
      case "bytes":
        return Buffer.from(given, "base64");
      default:
        return given;
    }
  }
  return given instanceof Date ? timestamp(given, format) : (given as SqlValue);
}

function timestamp(date: Date, format: TimestampFormat): SqlValue {
  return format === "unixepoch-ms" ? date.getTime() : date.toISOString().replace("Z", "+00:00");
}

/** The error that Prisma understands. One that is not the database's stays as it is, and Prisma hands it on. */
export function errorFor(error: unknown): unknown {
  if (!(error instanceof FlatwaterError) || error.kind === "misuse") {
    return error;
  }
  return new DriverAdapterError({ originalCode: error.code, originalMessage: error.message, ...mapped(error) });
}

function mapped(error: FlatwaterError): MappedError {
  const { code, kind, hint } = error;
  const message = hint === undefined ? error.message : error.message.replace(` -- ${hint}`, "");
  switch (code) {
    case "SQLITE_CONSTRAINT_UNIQUE":
    case "SQLITE_CONSTRAINT_PRIMARYKEY": {
      const { constraint, table } = failedColumns(message);
      return table === undefined
        ? { kind: "UniqueConstraintViolation", constraint }
        : { kind: "UniqueConstraintViolation", constraint, table };
    }
    case "SQLITE_CONSTRAINT_NOTNULL":
      return { kind: "NullConstraintViolation", constraint: failedColumns(message).constraint };
    case "SQLITE_CONSTRAINT_FOREIGNKEY":
    case "SQLITE_CONSTRAINT_TRIGGER":
      return { kind: "ForeignKeyConstraintViolation", constraint: { foreignKey: {} } };
  }
  if (kind === "busy" || kind === "timeout") {
    return { kind: "SocketTimeout" };
  }
  if (kind === "closed") {
    return { kind: "ConnectionClosed" };
  }
  const [, table] = /no such table: (\S+)/.exec(message) ?? [];
  if (table !== undefined) {
    return { kind: "TableDoesNotExist", table };
  }
  const [, column] = /(?:no such column: |has no column named )(\S+)/.exec(message) ?? [];
  if (column !== undefined) {
    return { kind: "ColumnNotFound", column };
  }
  return { kind: "sqlite", extendedCode: error.errcode ?? 1, message };
}

/** The columns of `UNIQUE constraint failed: t.a, t.b`. An index on an expression has its name there. */
function failedColumns(message: string): {
  constraint: { fields: string[] } | { index: string };
  table: string | undefined;
} {
  const failed = /constraint failed: (.*)/.exec(message)?.[1] ?? "";
  const [, index] = /^index '(.*)'/.exec(failed) ?? [];
  if (index !== undefined) {
    return { constraint: { index }, table: undefined };
  }
  const names = failed.split(", ").map((name) => name.split("."));
  const fields = names.map((name) => name.at(-1)!);
  return { constraint: { fields }, table: names[0]!.slice(0, -1).join(".") || undefined };
}

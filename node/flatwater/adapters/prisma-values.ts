/**
 * Values and errors, from those of Prisma to those of this package, and back.
 *
 * Owns: what Prisma takes a column for, by the type in its table's definition and by its values; the kinds of its errors. What is stored
 * for a value is what Prisma's own adapters for SQLite store. Invariant: each row has its own value, or Prisma's client refuses it: no
 * value becomes another one to fit the type of a column. Leaves out: running statements.
 *
 * Raw queries make of a value what the type of its column says. SQLite has types of values, not of columns; so a type that does not fit all
 * values of a column is not said, and each is handed on as it is. Queries of models read the values alone.
 */

import {
  ColumnTypeEnum,
  DriverAdapterError,
  type ArgType,
  type ColumnType,
  type MappedError,
} from "@prisma/driver-adapter-utils";
import { FlatwaterError, type Constraint } from "../native/errors.js";
import type { Table } from "../values/rows.js";
import type { SqlValue } from "../values/sql.js";
import { isoOf, isTime } from "../values/times.js";

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

/** Of a column whose values are of several kinds: Prisma hands them on as they are. */
const ANY = ColumnTypeEnum.UnknownNumber;

/** Kinds of values, as bits: a column may have several. */
const INTEGER = 1;
const BIG = 2;
const REAL = 4;
const TEXT = 8;
const BLOB = 16;

function kindOf(value: unknown): number {
  switch (typeof value) {
    case "number":
      return REAL;
    case "bigint":
      return isSafe(value) ? INTEGER : BIG;
    case "string":
      return TEXT;
    default:
      return value === null ? 0 : BLOB;
  }
}

/** Whether a number of JavaScript has all digits of an integer. */
function isSafe(value: bigint): boolean {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER;
}

/**
 * Makes of the rows of a table what Prisma takes, and returns the type of each column. All integers of the rows are bigints, so that
 * a real without a fraction is none.
 */
export function typed({ declaredTypes, rows }: Table): ColumnType[] {
  return declaredTypes.map((declared, at) => {
    let kinds = 0;
    for (const row of rows) {
      const kind = kindOf(row[at]);
      kinds |= kind;
      if (kind === INTEGER) {
        row[at] = Number(row[at]);
      }
    }
    const type = typeOf(DECLARED[declared.toUpperCase()], kinds);
    const form = FORMS[type];
    if (form !== undefined) {
      const values = rows.map((row) => (row[at] === null ? null : form(row[at] as SqlValue)));
      if (values.includes(undefined)) {
        return ANY;
      }
      rows.forEach((row, of) => (row[at] = values[of]));
    } else if ((kinds & BIG) !== 0 && type !== ANY) {
      rows.forEach((row) => (row[at] = typeof row[at] === "bigint" ? String(row[at]) : row[at]));
    }
    return type;
  });
}

/** What a column is that has such values. */
function typeOf(declared: ColumnType | undefined, kinds: number): ColumnType {
  const isNumbers = (kinds & (TEXT | BLOB)) === 0;
  switch (declared) {
    case ColumnTypeEnum.Int32:
    case ColumnTypeEnum.Int64:
      if (isNumbers && (kinds & REAL) === 0) {
        return (kinds & BIG) === 0 ? declared : ColumnTypeEnum.Int64;
      }
      break;
    case ColumnTypeEnum.Float:
    case ColumnTypeEnum.Double:
      if (isNumbers && (kinds & BIG) === 0) {
        return declared;
      }
      break;
    case ColumnTypeEnum.Bytes:
      if ((kinds & ~BLOB) === 0) {
        return declared;
      }
      break;
    case ColumnTypeEnum.Numeric:
      if (isNumbers) {
        return declared;
      }
      break;
    case undefined:
      break;
    default:
      return declared;
  }
  switch (kinds) {
    case 0:
      return declared ?? ColumnTypeEnum.Int32;
    case TEXT:
      return ColumnTypeEnum.Text;
    case BLOB:
      return ColumnTypeEnum.Bytes;
    case INTEGER:
    case BIG:
    case BIG | INTEGER:
      return ColumnTypeEnum.Int64;
    default:
      // A number of JavaScript has not all digits.
      return isNumbers && (kinds & BIG) !== 0 ? ColumnTypeEnum.Numeric : ANY;
  }
}

/** What Prisma takes for a value in a column of these types; undefined if the value is of another one. */
const FORMS: Partial<Record<ColumnType, (value: SqlValue) => SqlValue | undefined>> = {
  [ColumnTypeEnum.DateTime]: timeOf,
  [ColumnTypeEnum.Date]: timeOf,
  [ColumnTypeEnum.Time]: (value) =>
    typeof value === "string" && isTime(Date.parse(`1970-01-01T${value}Z`)) ? value : undefined,
  [ColumnTypeEnum.Boolean]: (value) =>
    value === 0 || value === 1 || value === "true" || value === "false" ? value : undefined,
  // SQLite has made a number of JSON that is one.
  [ColumnTypeEnum.Json]: (value) =>
    typeof value === "number" || typeof value === "bigint"
      ? String(value)
      : typeof value === "string"
        ? value
        : undefined,
};

/** A time as text, or as milliseconds since 1970. */
function timeOf(value: SqlValue): string | undefined {
  if (typeof value === "number" || typeof value === "bigint") {
    const time = new Date(Number(value));
    return isTime(time.getTime()) ? time.toISOString() : undefined;
  }
  return typeof value === "string" ? isoOf(value) : undefined;
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
  if (!(error instanceof FlatwaterError) || error.kind === "misuse" || error.kind === "decode") {
    return error;
  }
  return new DriverAdapterError({ originalCode: error.code, originalMessage: error.message, ...mapped(error) });
}

function mapped(error: FlatwaterError): MappedError {
  const { kind, hint } = error;
  const message = hint === undefined ? error.message : error.message.replace(` -- ${hint}`, "");
  switch (error.constraint?.kind) {
    case "unique":
    case "primary_key": {
      const { table } = error.constraint;
      const constraint = failed(error.constraint);
      return table === undefined
        ? { kind: "UniqueConstraintViolation", constraint }
        : { kind: "UniqueConstraintViolation", constraint, table };
    }
    case "not_null":
      return { kind: "NullConstraintViolation", constraint: failed(error.constraint) };
    case "foreign_key":
      if (error.errcode === undefined) {
        // That of a check of the whole database, whose text says what it has found.
        break;
      }
      return { kind: "ForeignKeyConstraintViolation", constraint: { foreignKey: {} } };
  }
  if (kind === "busy" || kind === "timeout" || kind === "expired") {
    return { kind: "SocketTimeout" };
  }
  if (kind === "closed") {
    return { kind: "ConnectionClosed" };
  }
  if (kind === "sql") {
    const table = behind(message, "no such table: ");
    if (table !== undefined) {
      return { kind: "TableDoesNotExist", table };
    }
    const column = behind(message, "no such column: ") ?? behind(message, " has no column named ");
    if (column !== undefined) {
      return { kind: "ColumnNotFound", column };
    }
  }
  return { kind: "sqlite", extendedCode: error.errcode ?? 1, message };
}

/** What follows on the first occurrence of a part; undefined if there is none. */
function behind(text: string, part: string): string | undefined {
  const at = text.indexOf(part);
  return at < 0 ? undefined : text.slice(at + part.length);
}

/** What Prisma is told of a constraint: its columns, or the name of an index on an expression. */
function failed({ columns, name }: Constraint): { fields: string[] } | { index: string } {
  return name === undefined ? { fields: [...columns] } : { index: name };
}

// What steps leave for later ones: streams, and results with the names of their columns.
import { columnNames, RowsReader } from "../../dist/values/rows.js";

const QUERY = 1;

export class Stream {
  constructor(on, sql, params) {
    this.rows = on.stream(sql, params, { rows: "array" });
  }
}

class WithColumns extends RowsReader {
  chunk(text) {
    super.chunk(text);
    this.rows.columns = columnNames();
  }
}

/** Rows as arrays, with the names of the columns, which are also there without rows. */
export function queryWithColumns(on, sql, params, options) {
  return on.perform(QUERY, sql, params, options, new WithColumns("array"), options);
}

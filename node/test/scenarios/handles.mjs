// What steps leave for later ones: transactions that are kept, streams, and results with the names of their columns.
import { columnNames, RowsReader } from "../../dist/values/rows.js";

const QUERY = 1;

/** The program's own error with which it rolls back. */
class RolledBack extends Error {}

/** A transaction whose function waits until somebody ends it. */
export class Held {
  static begin(on, options) {
    return new Promise((resolve, reject) => {
      const held = new Held();
      const body = (transaction) =>
        new Promise((commit, rollBack) => {
          Object.assign(held, { transaction, commit, rollBack });
          resolve(held);
        });
      held.over = on.transaction(body, options);
      held.over.catch(reject);
    });
  }

  async end(commits) {
    if (commits) {
      this.commit();
      return this.over;
    }
    this.rollBack(new RolledBack());
    await this.over.catch((error) => {
      if (!(error instanceof RolledBack)) {
        throw error;
      }
    });
  }
}

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

// The steps of random programs, on Flatwater and on better-sqlite3. What an inner step comes to is told to `outcome`.

export class Undone extends Error {}

/** Runs a step here. */
export async function here(on, { kind, of, fails, ends, steps }, outcome) {
  const all = async (tx) => {
    for (const step of steps) await outcome(() => here(tx, step, outcome));
  };
  switch (kind) {
    case "run":
      return on.execute(...of);
    case "all":
      return on.query(...of);
    case "get":
      return (await on.queryOptional(...of)) ?? null;
    case "pluck":
      return on.queryValues(...of);
    case "raw":
      return on.query(...of, { rows: "array" });
    case "bigint":
      return on.query(...of, { integers: "bigint" });
    case "merged":
      return on.query(...of, { rows: "merged" });
    case "any": {
      const { columns, rows, changes } = await on.run(...of, { rows: "array" });
      return rows === undefined ? changes : { columns, rows };
    }
    case "iterate": {
      const rows = [];
      for await (const row of on.stream(...of)) rows.push(row);
      return rows;
    }
    case "many":
      return on.executeMany(...of);
    case "many_returning":
      return on.queryMany(...of);
    case "batch":
      return (await on.batch(of)).map(({ changes, rows }) => rows ?? changes);
    case "script":
      return on.executeScript(of.join("; "));
    case "begun": {
      const tx = await on.begin();
      await all(tx);
      return tx[ends]();
    }
    case "savepoint":
      await on.savepoint("s");
      await all(on);
      return on[ends]("s");
    case "own": {
      const own = on.connection();
      await own.execute("BEGIN IMMEDIATE");
      await all(own);
      await own.execute(ends);
      return own.close();
    }
    default:
      return on.transaction(async (tx) => {
        await all(tx);
        if (fails) throw new Undone();
      });
  }
}

/** A number without a fraction is bound as an integer there only if it is a bigint. */
function params(given) {
  const bound = (value) =>
    Number.isInteger(value) && !Object.is(value, -0) && Math.abs(value) < 2 ** 53 ? BigInt(value) : value;
  const named = () => Object.fromEntries(Object.entries(given).map(([name, value]) => [name, bound(value)]));
  return Array.isArray(given) ? given.map(bound) : [named()];
}

/** Runs the same step there. */
export function there(on, step, outcome) {
  const { kind, of, steps } = step;
  if (steps !== undefined) {
    return transaction(on, step, () => steps.forEach((inner) => outcome(() => there(on, inner, outcome))));
  }
  const one = ([sql, given], returns = "all") => {
    const statement = on.prepare(sql);
    return statement.reader ? statement[returns](...params(given)) : statement.run(...params(given)).changes;
  };
  switch (kind) {
    case "many":
      return on.transaction(() => of[1].reduce((sum, row) => sum + one([of[0], row]), 0))();
    case "many_returning":
      return on.transaction(() => of[1].flatMap((row) => one([of[0], row])))();
    case "batch":
      return on.transaction(() => of.map((statement) => one(statement)))();
    case "script":
      return on.transaction(() => void on.exec(of.join("; ")))();
  }
  const [statement, values] = [on.prepare(of[0]), params(of[1])];
  switch (kind) {
    case "run":
      return statement.run(...values);
    case "get":
      return statement.get(...values) ?? null;
    case "pluck":
      return statement.pluck().all(...values);
    case "raw":
      return statement.raw().all(...values);
    case "bigint":
      return statement.safeIntegers().all(...values);
    case "any": {
      if (!statement.reader) return statement.run(...values).changes;
      const columns = statement.columns().map(({ name }) => name);
      return { columns, rows: statement.raw().all(...values) };
    }
    case "iterate":
      return [...statement.iterate(...values)];
    default:
      return statement.all(...values);
  }
}

/** The steps in a transaction or a savepoint there, in SQL where it has no call for it. */
function transaction(on, { kind, fails, ends }, all) {
  switch (kind) {
    case "begun": {
      const [begin, commit, rollback] = on.inTransaction
        ? ["SAVEPOINT begun", "RELEASE begun", "ROLLBACK TO begun; RELEASE begun"]
        : ["BEGIN", "COMMIT", "ROLLBACK"];
      on.exec(begin);
      all();
      return void on.exec(ends === "commit" ? commit : rollback);
    }
    case "savepoint":
      on.exec("SAVEPOINT s");
      all();
      return void on.exec(ends === "release" ? "RELEASE s" : "ROLLBACK TO s");
    case "own":
      on.exec("BEGIN IMMEDIATE");
      all();
      return void on.exec(ends);
    default:
      return on.transaction(() => {
        all();
        if (fails) throw new Undone();
      })();
  }
}

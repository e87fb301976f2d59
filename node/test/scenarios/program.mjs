// The program that a scenario describes: each verb is the call of this package. Fields and verbs that it does not know are errors.
import assert from "node:assert/strict";
import { AsyncResource } from "node:async_hooks";
import { writeFileSync } from "node:fs";
import { FlatwaterError, open } from "../../dist/index.mjs";
import { queryWithColumns, Stream } from "./handles.mjs";
import { ended, known } from "./results.mjs";
import { built, failed, params, sameRow, value } from "./values.mjs";

const COMMON = ["in", "timeout_ms", "start", "error"];
/** Each verb with the fields that it may have beside the common ones. */
const VERBS = {
  open: ["path", "options"],
  close: [],
  execute: ["params", "changes", "last_insert_rowid"],
  execute_many: ["rows", "changes"],
  query_many: ["rows", "returned"],
  run: ["params", "columns", "result"],
  batch: ["results"],
  execute_script: [],
  query: ["params", "columns", "rows"],
  query_one: ["params", "row"],
  query_value: ["params", "value"],
  query_optional: ["params", "row"],
  query_optional_value: ["params", "value"],
  query_values: ["params", "values"],
  query_json: ["params", "json_options", "json"],
  stream: ["sql", "params"],
  next: ["rows", "end"],
  snapshot: [],
  prepare: ["sql"],
  begin: [],
  commit: [],
  rollback: [],
  savepoint: [],
  release: [],
  rollback_to: [],
  connection: ["foreign_keys"],
  transaction: ["as", "raised"],
  raise: [],
  migrate: ["ignore_missing", "applied"],
  backup: [],
  vacuum: [],
  vacuum_into: [],
  incremental_vacuum: ["pages"],
  serialize: [],
  open_blob: ["table", "column", "rowid", "bytes"],
  read_blob: ["position", "bytes", "value"],
  write_blob: ["position", "value"],
  await: [],
  drop: [],
  create: ["as"],
  write_file: [],
};
const MAKE = new Set(["open", "snapshot", "prepare", "begin", "connection", "stream", "serialize", "open_blob"]);

const camel = (name) => name.replaceAll(/_(.)/g, (_, letter) => letter.toUpperCase());

/** The program's own error. */
class Raised extends Error {}

/** What the steps create, as the module of functions has it: that is there from the beginning, where a scenario does not mind. */
function functionsOf(steps) {
  const url = new URL("./functions.mjs", import.meta.url);
  for (const step of steps.filter((step) => "create" in step)) {
    url.searchParams.append(step.create, step.as ?? step.create);
  }
  return url.search === "" ? undefined : url;
}

export class Program {
  handles = new Map();
  /** Of handles that were dropped: what ends when others end. */
  ending = [];

  constructor(path, directory) {
    this.path = path;
    this.directory = directory;
  }

  async run(scenario) {
    known(scenario, ["name", "options", "needs_a_file", "steps"]);
    const { steps } = scenario;
    const first = steps.find((step) => !("write_file" in step)) ?? {};
    if (!("open" in first)) {
      this.functions = functionsOf(steps);
      this.keep("db", await this.open(undefined, scenario.options));
    }
    try {
      await this.steps(steps);
      const started = [...this.handles].filter(([, handle]) => handle.call).map(([name]) => name);
      assert.deepEqual(started, [], "these were started, and neither awaited nor dropped");
    } finally {
      const handles = [...this.handles.values()];
      await Promise.all(handles.filter((handle) => !handle.database).map((handle) => this.letGo(handle)));
      await Promise.all(handles.filter((handle) => handle.database).map((handle) => handle.session.close()));
      await Promise.all(this.ending);
    }
  }

  async steps(steps) {
    for (const [at, step] of steps.entries()) {
      try {
        await this.step(step);
      } catch (error) {
        if (error instanceof assert.AssertionError) {
          error.message = `step ${at + 1}: ${error.message}`;
        }
        throw error;
      }
    }
  }

  async step(step) {
    const [verb, ...others] = Object.keys(step).filter((field) => field in VERBS);
    assert.ok(verb !== undefined && others.length === 0, `no verb, or several: ${Object.keys(step)}`);
    known(step, [verb, ...COMMON, ...VERBS[verb]]);
    const of = step[verb];
    switch (verb) {
      case "raise":
        throw new Raised(of);
      case "create":
        return assert.ok(!("error" in step), "a module of functions creates nothing later");
      case "write_file":
        return writeFileSync(this.path, value(of));
      case "drop":
        return this.letGo(this.take(of));
      case "await": {
        const { step, call } = this.take(of);
        return this.end(step, call);
      }
      case "next":
        return this.next(step, this.handle(of).stream);
      case "transaction":
        return this.transaction(step);
    }
    const abort = new AbortController();
    const call = this.call(step, verb, { timeout: step.timeout_ms, signal: abort.signal });
    if ("start" in step) {
      // It is awaited later.
      call.catch(() => {});
      return this.keep(step.start, { step, call, abort });
    }
    return this.end(step, call);
  }

  async end(step, call) {
    const verb = Object.keys(step).find((field) => field in VERBS);
    let result;
    try {
      result = await call;
    } catch (error) {
      if (!(error instanceof FlatwaterError) || !("error" in step)) {
        throw error;
      }
      return failed(step.error, error);
    }
    assert.ok(!("error" in step), "it did not fail");
    ended(step, verb, result);
    if (MAKE.has(verb)) {
      this.keep(step[verb], result);
    }
  }

  /** Makes the call of a step, which begins at once. */
  call(step, verb, options) {
    try {
      return Promise.resolve(this.made(step, verb, options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  made(step, verb, options) {
    const of = step[verb];
    switch (verb) {
      case "open":
        return this.open(step.path, step.options);
      case "close":
        return this.handle(of).session.close();
      case "commit":
      case "rollback":
        return this.take(of).transaction[verb]();
      case "read_blob":
      case "write_blob": {
        const { blob } = this.handle(of);
        blob.seek(step.position);
        return verb === "read_blob" ? blob.read(step.bytes) : blob.write(value(step.value));
      }
    }
    const on = this.handle(step.in ?? "db").session;
    const values = params(step.params);
    switch (verb) {
      case "begin":
        // In a flow of its own: what the scenario does beside it is not inside of it.
        return new AsyncResource("begin")
          .runInAsyncScope(() => on.begin(options))
          .then((transaction) => ({ session: transaction, transaction }));
      case "savepoint":
      case "release":
      case "rollback_to":
        return on[camel(verb)](of);
      case "connection": {
        const connection = on.connection({ foreignKeys: step.foreign_keys });
        return { session: connection, connection };
      }
      case "snapshot":
        return on.snapshot(options).then((session) => ({ session, snapshot: true }));
      case "prepare":
        return on.prepare(step.sql, options).then((statement) => ({ statement }));
      case "stream":
        return { stream: new Stream(on, step.sql, values) };
      case "execute_many":
        return on.executeMany(of, step.rows.map(params), options);
      case "query_many":
        return on.queryMany(of, step.rows.map(params), { ...options, rows: "array" });
      case "batch":
        return on.batch(
          of.map(([sql, row]) => [sql, params(row)]),
          options,
        );
      case "execute_script":
        return on.executeScript(of, options);
      case "migrate":
        return on.migrate(of, { ...options, ignoreMissing: step.ignore_missing });
      case "backup":
        return on.backup(this.named(of), options);
      case "vacuum":
        return on.vacuum(options);
      case "vacuum_into":
        return on.vacuumInto(this.named(of), options);
      case "incremental_vacuum":
        return on.incrementalVacuum(of, options);
      case "serialize":
        return on.serialize(options).then((bytes) => ({ bytes }));
      case "open_blob":
        return on.openBlob(step.table, step.column, step.rowid, options).then((blob) => ({ blob }));
      case "query_json": {
        const given = Object.entries(step.json_options ?? {}).map(([name, option]) => [camel(name), option]);
        return on.queryJson(this.text(of), values, { ...options, ...Object.fromEntries(given) });
      }
    }
    if ("columns" in step && verb !== "run") {
      return queryWithColumns(on, this.text(of), values, options);
    }
    const form = verb === "execute" ? options : { ...options, rows: "array" };
    return on[camel(verb)](this.text(of), values, form);
  }

  open(path = "{path}", given = {}) {
    const options = { integers: "auto", functions: this.functions, tuning: {} };
    for (const [name, option] of Object.entries(given)) {
      if (name === "attach") {
        const files = Object.entries(option).map(([name, path]) => [name, this.named(path)]);
        options.tuning.attach = Object.fromEntries(files);
      } else if (name === "deserialize") {
        const bytes = typeof option === "string" ? this.handle(option).bytes : Buffer.from(value(option));
        options.tuning.deserialize = bytes;
      } else if (["auto_vacuum", "double_quoted_strings", "observe", "untrusted"].includes(name)) {
        options.tuning[camel(name)] = option;
      } else {
        options[camel(name.replace(/_ms$/, ""))] = option;
      }
    }
    return open(this.named(path), options).then((session) => ({ session, database: true }));
  }

  async next(step, stream) {
    try {
      for (const row of step.rows ?? []) {
        sameRow(row, (await stream.rows.next()).value ?? []);
      }
      if (step.end || "error" in step) {
        const next = await stream.rows.next();
        assert.ok(next.done && !("error" in step), `the next is ${next.value}`);
      }
    } catch (error) {
      if (!(error instanceof FlatwaterError) || !("error" in step)) {
        throw error;
      }
      failed(step.error, error);
    }
  }

  async transaction(step) {
    const on = this.handle(step.in ?? "db").session;
    const body = async (session) => {
      this.keep(step.as, { session });
      try {
        await this.steps(step.transaction);
      } finally {
        this.handles.delete(step.as);
      }
    };
    try {
      await on.transaction(body, { timeout: step.timeout_ms });
    } catch (error) {
      if (error instanceof Raised) {
        return assert.equal(error.message, step.raised);
      }
      if (!(error instanceof FlatwaterError) || !("error" in step)) {
        throw error;
      }
      return failed(step.error, error);
    }
    assert.ok(!("raised" in step) && !("error" in step), "it did not fail");
  }

  async letGo(handle) {
    if (handle.call) {
      handle.abort.abort();
      const [{ value }] = await Promise.allSettled([handle.call]);
      // It came before it was given up.
      if (MAKE.has(Object.keys(handle.step).find((field) => field in VERBS)) && value) {
        await this.letGo(value);
      }
    } else if (handle.transaction) {
      await handle.transaction.rollback();
    } else if (handle.connection) {
      await handle.connection.close();
    } else if (handle.stream) {
      await handle.stream.rows.return();
    } else if (handle.snapshot) {
      handle.session.close();
    } else if (handle.database) {
      // Transactions keep it open.
      this.ending.push(handle.session.close());
    }
  }

  text(of) {
    if (typeof of === "string") {
      return of;
    }
    return "prepared" in of ? this.handle(of.prepared).statement.source : built(of.built);
  }

  named(path) {
    return path.replace("{path}", this.path).replace("{directory}", this.directory);
  }

  keep(name, handle) {
    assert.ok(!this.handles.has(name), `${name} is used twice`);
    this.handles.set(name, handle);
  }

  handle(name) {
    assert.ok(this.handles.has(name), `there is no ${name}`);
    return this.handles.get(name);
  }

  take(name) {
    const handle = this.handle(name);
    this.handles.delete(name);
    return handle;
  }
}

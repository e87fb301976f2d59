// The types of the package, as a program sees them. It is compiled, and does not run: a name that does not exist does not compile.
import { open, type Options, type StandardSchema, type Stats, type Tuning } from "../../dist/index.mjs";

const tuning: Tuning = {
  walLimitBytes: 1 << 20,
  autoVacuum: "incremental",
  group: false,
};
const options: Options = { durability: "full", readers: 2, slowStatement: 50, journal: "wal", tuning };
const db = await open("app.db", options);
// @ts-expect-error A misspelt option.
await open("app.db", { durabilty: "full" });
// @ts-expect-error A misspelt key of `tuning`.
await open("app.db", { tuning: { walLimitByte: 1 } });
// @ts-expect-error A key of `tuning` beside it.
await open("app.db", { walLimitBytes: 1 });
// @ts-expect-error An option in `tuning`.
await open("app.db", { tuning: { journal: "wal" } });
// @ts-expect-error A word that is none of those.
await open("app.db", { journal: "delete" });

const stats: Stats = db.stats();
const counted: number =
  stats.wal.frames + stats.inline.queuedBusy + stats.leases.reusedByWrites + stats.turns.stalled + stats.live.runs;
const slowest: number | undefined = stats.calls.executeMany?.maxUs;
const age: number | null | undefined = stats.wal.cause?.age;
const oldest: number | null = stats.wal.oldestRead;
// @ts-expect-error A misspelt counter.
stats.writeWaiting;
// @ts-expect-error A misspelt counter of the WAL.
stats.wal.frame;
// @ts-expect-error A kind of call that there is not.
stats.calls.executemany;
// @ts-expect-error Calls of this kind may not have been made.
stats.calls.query.count;
// @ts-expect-error Counters are read.
stats.live.runs = 0;
export { age, counted, oldest, slowest };

interface User {
  name: string;
}
declare const schema: StandardSchema<User>;
const users: User[] = await db.query("SELECT * FROM users", [], { as: schema, types: "standard" });
const user: User | undefined = await (await db.prepare("SELECT * FROM users")).with({ as: schema, timeout: 5 }).get();
await db.query("SELECT 1", [], { types: { at: "unix_seconds", "events.at": "stored" } });
// @ts-expect-error A word that is none of those.
await db.query("SELECT 1", [], { types: { at: "unix" } });
// @ts-expect-error The same of the database.
await open("app.db", { types: "all" });
await db.transaction(async (tx) => {
  await tx.rollback();
  // @ts-expect-error A transaction commits when its function returns.
  await tx.commit();
});
const begun = await db.begin();
await begun.commit({ timeout: 5 });
export { user, users };

const digits = { toFixed: () => "12.50" };
await db.execute("INSERT INTO t VALUES (?, ?, ?)", [{ a: 1 }, ["x"], digits]);
await db.execute("INSERT INTO t VALUES (:doc, :price)", { doc: [1], price: digits });
// @ts-expect-error A function.
await db.execute("INSERT INTO t VALUES (?)", [() => 1]);
// @ts-expect-error A list of a template is made with sql.list.
await db.sql`SELECT * FROM t WHERE a IN ${[1, 2]}`;

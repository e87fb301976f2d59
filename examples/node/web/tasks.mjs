// @ts-check
// A list of tasks as a web service, on Fastify, with a page that shows each change at once, by server-sent events.
//
// It shows a database that is opened and closed with the service; rows as JSON; a live query as a stream of events; errors as status
// codes.
//
//     make node-package && cd examples/node && npm install
//     node web/tasks.mjs
//
// Open http://127.0.0.1:3000 in two tabs. Several processes may share the file tasks.db, or the one that TASKS_DB names.
import { readFile } from "node:fs/promises";
import Fastify from "fastify";
import { FlatwaterError, open } from "flatwater";

const TASKS = `
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL UNIQUE CHECK (title <> ''),
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done'))
) STRICT`;
const OPEN =
  "SELECT id, title, state FROM tasks WHERE state = 'open' ORDER BY id";

const db = await open(process.env.TASKS_DB ?? "tasks.db", {
  migrations: [["001_tasks", TASKS]],
  timeout: 5_000,
});
const app = Fastify({ forceCloseConnections: true });
app.addHook("onClose", () => db.close());

app.get("/", async (_, reply) =>
  reply
    .type("text/html")
    .send(await readFile(new URL("page.html", import.meta.url))),
);

app.get("/tasks", async (_, reply) =>
  reply.type("application/json").send(await db.queryJson(OPEN)),
);

app.post("/tasks", async (request, reply) => {
  const { title } = /** @type {{ title: string }} */ (request.body);
  reply.code(201);
  return db.queryOne(
    "INSERT INTO tasks (title) VALUES (?) RETURNING id, title, state",
    [title],
  );
});

app.patch("/tasks/:id", async (request) => {
  const { id } = /** @type {{ id: string }} */ (request.params);
  const { state } = /** @type {{ state: string }} */ (request.body);
  return db.queryOne(
    "UPDATE tasks SET state = ? WHERE id = ? RETURNING id, title, state",
    [state, Number(id)],
  );
});

/** The open tasks, now and whenever they have changed, by this process or another one. */
app.get("/events", async (_, reply) => {
  reply.hijack();
  reply.raw.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
  });
  const results = db.live(OPEN);
  reply.raw.on("close", () => results.return());
  for await (const tasks of results) {
    reply.raw.write(`event: tasks\ndata: ${JSON.stringify(tasks)}\n\n`);
  }
  reply.raw.end();
});

app.setErrorHandler((error, _, reply) => {
  if (!(error instanceof FlatwaterError)) {
    return reply.send(error);
  }
  if (error.code === "SQLITE_CONSTRAINT_UNIQUE") {
    return reply.code(409).send({ detail: "there is a task of this title" });
  }
  if (error.kind === "constraint" || error.kind === "misuse") {
    return reply.code(422).send({ detail: "a task needs a title" });
  }
  if (error.kind === "row_not_found") {
    return reply.code(404).send({ detail: "there is no such task" });
  }
  // Another process may have held the file's lock for too long. Then the client may try again.
  return error.retryable
    ? reply.code(503).header("retry-after", "1").send({ detail: "try again" })
    : reply.send(error);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => app.close());
}
console.log(
  await app.listen({
    port: Number(process.env.PORT ?? 3000),
    host: "127.0.0.1",
  }),
  "",
);

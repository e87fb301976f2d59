// @ts-check
// A web service of four processes that share a port and a database file, by node:cluster.
//
// It shows what processes share: each opens the file itself, and the migrations are applied once, whoever comes first; a write is seen
// by reads that begin after it in any process; writes of all take turns, so no request fails because the file is locked. A process
// that ends is replaced.
//
//     make node-package && cd examples/node && npm install
//     node cluster.mjs [visits.db]
//
// curl http://127.0.0.1:3000 counts a visit, and shows how many each process has counted.
import cluster from "node:cluster";
import { once } from "node:events";
import { createServer } from "node:http";
import { open } from "flatwater";

const PROCESSES = 4;
const VISITS = `CREATE TABLE visits (process INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT`;
const COUNT = `INSERT INTO visits VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1`;

await (cluster.isPrimary ? oversee() : serve());

/** Starts the processes, and replaces those that end. */
async function oversee() {
  for (let at = 0; at < PROCESSES; at++) {
    cluster.fork();
  }
  const replace = () => cluster.fork();
  cluster.on("exit", replace);
  for (let listening = 0; listening < PROCESSES; listening++) {
    const [, { port }] = await once(cluster, "listening");
    if (listening === PROCESSES - 1) {
      console.log(`http://127.0.0.1:${port}`);
    }
  }
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      cluster.off("exit", replace);
      cluster.disconnect();
    });
  }
}

/** What each process does. */
async function serve() {
  const db = await open(process.argv[2] ?? "visits.db", {
    migrations: [["001_visits", VISITS]],
    timeout: 5_000,
  });
  const server = createServer(async (_, response) => {
    try {
      await db.execute(COUNT, [process.pid]);
      const visits = await db.queryJson("SELECT * FROM visits ORDER BY 1");
      response.setHeader("content-type", "application/json");
      response.end(visits);
    } catch (error) {
      console.error(error);
      response.writeHead(500).end();
    }
  });
  server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
  // Ctrl-C reaches all processes; the first one says when to stop.
  process.on("SIGINT", () => {});
  await once(process, "disconnect");
  await db.close();
}

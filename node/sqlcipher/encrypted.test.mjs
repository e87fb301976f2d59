// The package with SQLCipher, installed as a user installs it, into a folder that has nothing else: `make test-node-sqlcipher`.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const own = fileURLToPath(new URL(".", import.meta.url));
const installed = mkdtempSync(join(tmpdir(), "flatwater-"));
after(() => rmSync(installed, { recursive: true, force: true }));

function install() {
  const platform = join(installed, "platform");
  const tool = fileURLToPath(new URL("../tools/platform.mjs", import.meta.url));
  execFileSync(process.execPath, [tool, join(own, "dist/flatwater.node"), platform, own]);
  const [{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", own], { cwd: installed }));
  writeFileSync(join(installed, "package.json"), "{}");
  execFileSync("npm", ["install", "--silent", "--offline", "--no-audit", `./${filename}`, "./platform"], {
    cwd: installed,
  });
}

install();
const from = createRequire(join(installed, "program.mjs"));
const { open, FlatwaterError } = await import(pathToFileURL(from.resolve("@flatwater/sqlcipher")).href);
const KEY = "open sesame, it's me";

function folder(t) {
  const made = mkdtempSync(join(tmpdir(), "flatwater-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A file with one table, and its key. */
async function made(t, key = KEY) {
  const path = join(folder(t), "app.db");
  const db = await open(path, { key });
  await db.executeScript("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)");
  await db.close();
  return path;
}

async function rows(path, key) {
  const db = await open(path, key === undefined ? {} : { key });
  try {
    return await db.queryValues("SELECT a FROM t ORDER BY a");
  } finally {
    await db.close();
  }
}

test("a file with a key is opened with it, and has nothing that is plain", async (t) => {
  for (const key of [KEY, new Uint8Array(32).map((_, at) => at)]) {
    const path = await made(t, key);
    assert.deepEqual(await rows(path, key), [1, 2]);
    assert.ok(!readFileSync(path).includes("SQLite format 3") && !readFileSync(path).includes("CREATE TABLE"));
  }
});

test("a key that does not open a file is refused, and is in no error", async (t) => {
  const path = await made(t);
  const plain = join(folder(t), "plain.db");
  await (await open(plain)).close();
  for (const [file, key, said] of [
    [path, "hunter2", /the key does not open/],
    [path, new Uint8Array(32), /the key does not open/],
    [path, undefined, /is encrypted, or is no SQLite database, and no key was given/],
    [plain, "hunter2", /is not encrypted, and a key was given/],
  ]) {
    await assert.rejects(open(file, { key }), (error) => {
      assert.ok(error instanceof FlatwaterError);
      assert.equal(error.kind, "key");
      assert.match(error.message, said);
      return !JSON.stringify(error).includes("hunter2") && !error.stack.includes("hunter2");
    });
  }
  assert.deepEqual(await rows(path, KEY), [1, 2]);
});

test("backups have the key, and exports the one that they are given", async (t) => {
  const path = await made(t);
  const place = folder(t);
  const db = await open(path, { key: KEY });
  await db.backup(join(place, "copy.db"));
  await db.export(join(place, "plain.db"));
  await db.export(join(place, "other.db"), { key: "another" });
  await assert.rejects(db.serialize(), { kind: "misuse", message: /`db\.export`/ });
  await db.close();
  assert.deepEqual(await rows(join(place, "copy.db"), KEY), [1, 2]);
  assert.deepEqual(await rows(join(place, "plain.db")), [1, 2]);
  assert.deepEqual(await rows(join(place, "other.db"), "another"), [1, 2]);
});

test("a database gets another key, and says which it has", async (t) => {
  const path = await made(t);
  const db = await open(path, { key: KEY });
  await db.rekey("another");
  assert.deepEqual([await db.hasKey("another"), await db.hasKey(KEY)], [true, false]);
  await db.execute("INSERT INTO t VALUES (3)");
  for (const wrong of [undefined, 5, new Uint8Array(31)]) {
    await assert.rejects(db.rekey(wrong), { kind: "misuse", message: /a passphrase, or the 32 bytes/ });
  }
  await db.close();
  assert.deepEqual(await rows(path, "another"), [1, 2, 3]);
  await assert.rejects(open(path, { key: KEY }), { kind: "key" });
});

test("a check names the pages that cannot be decrypted", async (t) => {
  const path = await made(t);
  const problems = async () => {
    const db = await open(path, { key: KEY });
    const all = [];
    for await (const problem of db.integrityCheck()) {
      all.push(problem);
    }
    await db.close();
    return all;
  };
  assert.deepEqual(await problems(), []);
  const bytes = readFileSync(path);
  bytes[4096 + 100] ^= 1;
  writeFileSync(path, bytes);
  assert.deepEqual(await problems(), ["HMAC verification failed for page 2"]);
});

test("what a check finds in an encrypted file whose pages are right is told as of a plain one", async (t) => {
  const ordered = (sign) => ({
    functionsOnLoop: (define) => define.collation("c", (one, other) => (one < other ? -sign : sign * (one > other))),
  });
  const [path, plain] = [join(folder(t), "app.db"), join(folder(t), "plain.db")];
  const found = [];
  for (const [file, key] of [
    [path, KEY],
    [plain, undefined],
  ]) {
    const made = await open(file, { key, ...ordered(1) });
    await made.executeScript("CREATE TABLE t (a COLLATE c UNIQUE); INSERT INTO t VALUES ('x'), ('y'), ('z')");
    await made.close();
    // In this order the index is wrong.
    const db = await open(file, { key, ...ordered(-1) });
    const problems = [];
    for await (const problem of db.integrityCheck()) {
      problems.push(problem);
    }
    await db.close();
    found.push(problems);
  }
  assert.ok(found[0].length > 1, found);
  assert.deepEqual(found[0], found[1]);
});

test("the blocks of the guide's page run", (t) => {
  const text = readFileSync(new URL("../../docs/guide/encryption.md", import.meta.url), "utf8");
  const blocks = [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code);
  assert.ok(blocks.length >= 4);
  const readme = readFileSync(new URL("README.md", import.meta.url), "utf8");
  const [, first] = /^```js\n(.*?)^```/ms.exec(readme);
  for (const code of [blocks.join("\n"), first]) {
    const file = join(installed, `${Math.random()}.mjs`);
    // Not every Node has `await using`.
    const program = code.replaceAll("await using ", "var ").replace(/^(const|let) /gm, "var ");
    writeFileSync(
      file,
      `import assert from "node:assert/strict";\nprocess.chdir(${JSON.stringify(folder(t))});\n${program}`,
    );
    const { status, stderr } = spawnSync(process.execPath, [file], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  }
});

// Spans and metrics of OpenTelemetry, and the figures for Prometheus.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { context, SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { Registry } from "prom-client";
import { instrument, observe } from "../../dist/opentelemetry.mjs";
import { collect } from "../../dist/prometheus.mjs";
import { createRequire } from "node:module";
import { database } from "../support.mjs";

const { FIGURES } = createRequire(import.meta.url)("../../dist/handles/figures.js");

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

/** What is exported until the test is over. */
function telemetry(t) {
  const spans = new InMemorySpanExporter();
  const exported = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: exported, exportIntervalMillis: 1e9 });
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const meterProvider = new MeterProvider({ readers: [reader] });
  t.after(() => Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]));
  const metrics = async () => {
    exported.reset();
    await meterProvider.forceFlush();
    const scopes = exported.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    return Object.fromEntries(
      scopes.flatMap(({ metrics }) => metrics).map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints]),
    );
  };
  return { tracerProvider, meterProvider, metrics, spans: () => spans.getFinishedSpans() };
}

test("a call is a span inside the one that was active", async (t) => {
  const { spans, metrics, ...providers } = telemetry(t);
  const db = await database(t);
  t.after(instrument(providers));
  const tracer = providers.tracerProvider.getTracer("test");
  await tracer.startActiveSpan("request", async (request) => {
    await db.query("SELECT ? AS a", ["secret"]);
    request.end();
  });
  const [span, request] = spans();
  assert.equal(span.parentSpanContext.spanId, request.spanContext().spanId);
  assert.equal(span.kind, SpanKind.CLIENT);
  const {
    "flatwater.queue": queue,
    "flatwater.lock": lock,
    "flatwater.run": run,
    "flatwater.ran_on": ranOn,
    ...facts
  } = span.attributes;
  for (const seconds of [queue, lock, run]) assert.ok(seconds >= 0);
  assert.ok(["caller", "reader", "writer"].includes(ranOn));
  const summary = `query ${db.path.split("/").at(-1)}`;
  assert.equal(span.name, summary);
  assert.deepEqual(facts, {
    "db.system.name": "sqlite",
    "db.namespace": db.path,
    "db.operation.name": "query",
    "db.query.summary": summary,
    "db.query.text": "SELECT ? AS a",
    "db.response.returned_rows": 1,
  });
  const { "db.client.operation.duration": duration } = await metrics();
  assert.equal(duration.find(({ attributes }) => attributes["db.operation.name"] === "query").value.count, 1);
});

test("an error is told by kind and code and not by value", async (t) => {
  const { spans, metrics: _, ...providers } = telemetry(t);
  const db = await database(t);
  await db.execute("CREATE TABLE t (a UNIQUE)");
  const stop = instrument({ ...providers, queryText: false, summary: ({ operation }) => `t.${operation}` });
  await assert.rejects(db.execute("INSERT INTO t VALUES (?1), (?1)", ["secret"]), { kind: "constraint" });
  await assert.rejects(db.execute("SELECT 1"), { code: "FLATWATER_RETURNS_ROWS" });
  stop();
  await db.query("SELECT 1");
  assert.deepEqual(
    spans().map(({ name, status, attributes }) => [
      name,
      status.code,
      attributes["error.type"],
      attributes["db.response.status_code"],
      attributes["db.query.text"],
    ]),
    [
      ["t.execute", SpanStatusCode.ERROR, "constraint", "SQLITE_CONSTRAINT_UNIQUE", undefined],
      ["t.execute", SpanStatusCode.ERROR, "misuse", "FLATWATER_RETURNS_ROWS", undefined],
    ],
  );
  assert.ok(!JSON.stringify(spans().map(({ attributes, events }) => [attributes, events])).includes("secret"));
});

test("figures are read when they are asked for, until the end", async (t) => {
  const { metrics, meterProvider } = telemetry(t);
  let asked = 0;
  const counted = (db) => Object.create(db, { stats: { value: () => (asked++, db.stats()) } });
  const [db, other] = [await database(t), await database(t)];
  const stop = observe(counted(db), { meterProvider });
  await db.execute("CREATE TABLE t (a)");
  const found = await metrics();
  const names = FIGURES.map(({ name }) => name);
  assert.deepEqual(
    names.filter((name) => found[name] === undefined),
    [],
  );
  const [size] = found["flatwater.wal.size"];
  assert.equal(size.value, db.stats().wal.fileBytes);
  assert.deepEqual(size.attributes, { "db.system.name": "sqlite", "db.namespace": db.path });
  assert.equal(asked, 1);
  stop();
  observe(counted(other), { meterProvider });
  await other.close();
  await metrics();
  assert.equal(asked, 1, "neither was read any more");
});

test("Prometheus gets each open database once", async (t) => {
  const registry = new Registry();
  const [db, other] = [await database(t), await database(t)];
  const stop = collect([db, other], { registry });
  await db.close();
  const text = await registry.metrics();
  assert.ok(text.includes(`flatwater_wal_size_bytes{database="${other.path}"} `));
  assert.ok(text.includes(`flatwater_turns_waited_seconds_total{database="${other.path}"} `));
  assert.ok(!text.includes(db.path));
  stop();
  assert.equal((await registry.metrics()).trim(), "");
});

test("the figures are those of all languages", () => {
  const lines = readFileSync(new URL("../../../conformance/figures.csv", import.meta.url), "utf8")
    .trim()
    .split("\n");
  const own = FIGURES.map(({ name, kind, unit }) => `${name},${kind},${unit}`);
  assert.deepEqual(lines.slice(1), own);
});

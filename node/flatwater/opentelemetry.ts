/**
 * Spans and metrics of OpenTelemetry, with `@opentelemetry/api`, an optional peer. Where they go is what the program configures.
 *
 * Owns: the attributes, which are those of the conventions for databases (https://opentelemetry.io/docs/specs/semconv/db/). Invariant: no
 * attribute has a bound value. Leaves out: when a call begins and ends (`tracing`), and what is counted (`figures`).
 */

import { context, metrics, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Attributes, BatchObservableResult, MeterProvider, Span, TracerProvider } from "@opentelemetry/api";
import { tracingChannel } from "node:diagnostics_channel";
import { basename } from "node:path";
import type { Database } from "./handles/database.js";
import { FIGURES } from "./handles/figures.js";
import { FlatwaterError } from "./native/errors.js";
import type { StatementEvent } from "./native/tracing.js";

export interface InstrumentOptions {
  /** The default is the global one. */
  tracerProvider?: TracerProvider | undefined;
  /** The default is the global one. */
  meterProvider?: MeterProvider | undefined;
  /** Whether spans have the SQL, with the literals that the program wrote into it. The default is yes. */
  queryText?: boolean | undefined;
  /** Returns a span's name and `db.query.summary`. The default is the method and the file, such as "query app.db". */
  summary?: ((event: StatementEvent) => string) | undefined;
}

const SCOPE = "flatwater";
/** The boundaries that the conventions advise, in seconds. */
const BOUNDARIES = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/**
 * Makes a span and the duration metric of each call of this process, of whichever database. A span is a child of the one that is active
 * where the call is made. Returns what ends that.
 */
export function instrument(options: InstrumentOptions = {}): () => void {
  const { queryText = true, summary = ({ operation, path }) => `${operation} ${basename(path)}` } = options;
  const tracer = (options.tracerProvider ?? trace).getTracer(SCOPE);
  const meter = (options.meterProvider ?? metrics).getMeter(SCOPE);
  const duration = meter.createHistogram("db.client.operation.duration", {
    unit: "s",
    description: "Duration of database client operations.",
    advice: { explicitBucketBoundaries: BOUNDARIES },
  });
  const returned = meter.createHistogram("db.client.response.returned_rows", {
    unit: "{row}",
    description: "The actual number of records returned.",
  });
  const begun = new WeakMap<StatementEvent, Begun>();
  const subscribers = {
    start(event: StatementEvent) {
      const name = summary(event);
      const attributes = { ...common(event), "db.query.summary": name };
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, context.active());
      begun.set(event, { span, at: performance.now() });
    },
    asyncEnd(event: StatementEvent) {
      const { span, at } = begun.get(event) ?? {};
      begun.delete(event);
      const attributes = { ...common(event), ...failure(event.error) };
      const milliseconds = event.total ?? (at === undefined ? undefined : performance.now() - at);
      if (milliseconds !== undefined) {
        duration.record(milliseconds / 1000, attributes);
      }
      if (event.rows !== undefined) {
        returned.record(event.rows, attributes);
      }
      if (span !== undefined) {
        end(span, event, queryText);
      }
    },
  };
  const channel = tracingChannel<StatementEvent, StatementEvent>("flatwater.statement");
  channel.start.subscribe(subscribers.start as Listener);
  channel.asyncEnd.subscribe(subscribers.asyncEnd as Listener);
  return () => {
    channel.start.unsubscribe(subscribers.start as Listener);
    channel.asyncEnd.unsubscribe(subscribers.asyncEnd as Listener);
  };
}

/** What a subscriber of a channel is. */
type Listener = (message: unknown, name: string | symbol) => void;

interface Begun {
  readonly span: Span;
  readonly at: number;
}

function common({ path, operation }: StatementEvent): Attributes {
  return { "db.system.name": "sqlite", "db.namespace": path, "db.operation.name": operation };
}

function failure(error: unknown): Attributes {
  if (error === undefined) {
    return {};
  }
  if (error instanceof FlatwaterError) {
    return { "error.type": error.kind, "db.response.status_code": error.code };
  }
  return { "error.type": error instanceof Error ? error.name : "_OTHER" };
}

function end(span: Span, event: StatementEvent, queryText: boolean): void {
  const { sql, rows, ranOn, queue, lock, run, error } = event;
  const seconds = (milliseconds: number | undefined) => (milliseconds === undefined ? undefined : milliseconds / 1000);
  const attributes: Attributes = {
    "db.query.text": queryText ? sql : undefined,
    "db.response.returned_rows": rows,
    "flatwater.ran_on": ranOn,
    "flatwater.queue": seconds(queue),
    "flatwater.lock": seconds(lock),
    "flatwater.run": seconds(run),
    ...failure(error),
  };
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) {
      span.setAttribute(name, value);
    }
  }
  if (error !== undefined) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: String(attributes["error.type"]) });
  }
  span.end();
}

/** Where the figures of a database go, and what is the attribute `db.namespace` of them. */
export interface ObserveOptions {
  /** The default is the global one. */
  meterProvider?: MeterProvider | undefined;
}

/**
 * Makes metrics of the figures of `db`, which are read when a reader of the metrics asks, until the database is closed. Returns what ends
 * that.
 */
export function observe(db: Database, { meterProvider }: ObserveOptions = {}): () => void {
  const meter = (meterProvider ?? metrics).getMeter(SCOPE);
  const attributes = { "db.system.name": "sqlite", "db.namespace": db.path };
  const instruments = FIGURES.map(({ name, kind, unit, help: description }) =>
    kind === "counter"
      ? meter.createObservableCounter(name, { unit, description })
      : meter.createObservableGauge(name, { unit, description }),
  );
  const read = (result: BatchObservableResult) => {
    if (!db.isClosed) {
      const stats = db.stats();
      FIGURES.forEach((figure, at) => result.observe(instruments[at]!, figure.read(stats), attributes));
    }
  };
  meter.addBatchObservableCallback(read, instruments);
  return () => meter.removeBatchObservableCallback(read, instruments);
}

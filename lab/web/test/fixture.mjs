// Made-up results for the page's test. No figure here was measured.

/** A fixed sequence of numbers between 0 and 1. */
function sequence(seed) {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}

const peers = { raw: 1, "raw-held": 0.4, mutex: 9, "tokio-rusqlite": 14, sqlx: 40, flatwater: 3, "py-aiosqlite": 70 };

const lanes = [
  ["point_query", "release", "reads", "one row by its key", 1.1, "queries"],
  ["query_10k", "release", "reads", "10,000 rows of six columns", 2600, "queries"],
  ["insert_sequential", "release", "writes", "100 small inserts, one after the other", 4, "rows"],
  ...[1, 2, 10, 100, 1000].map((at) => [`insert_concurrent_${at}`, "release", "groups", `${at} tasks insert at once`, 5 * at ** 0.7, "rows"]),
  ["sustained_8k_readers", "release", "sustained", "paced inserts of 8 KiB beside three overlapping readers", 12, "rows"],
  ["memory_query_10k", "release", "memory", "10,000 rows held at once", 900, "queries"],
  ["noop_execute", "focused", "profile", "an update of no row", 0.9, "calls"],
  ...[0, 200].flatMap((hold) => [1, 4, 16].map((at) => [`busy_${at}_hold_${hold}`, "focused", "busy", `${at} processes`, (hold + 5) * at, "turns"])),
  ["busy_study_8_4_2", "focused", "busy", "8 processes of 4 threads", 900, "transactions"],
  ["caller_blocking", "focused", "profile", "longest gap of a ticker on the runtime's thread", 30, "rows"],
];

/** Several processes on one file; only these peers have such lanes. */
const modes = { "busy-default": 300, "busy-handler": 3, "busy-turnstile": 1 };

const quantiles = [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999, 1];

function row(lane, unit, peer, run, order, p50, random) {
  const at = (quantile) => p50 * (1 + 0.6 * Math.log10(1 - Math.min(quantile, 0.99999)) ** 2) * (0.97 + 0.06 * random());
  const rising = quantiles.map(at).sort((one, other) => one - other);
  const of = (quantile) => rising[quantiles.indexOf(quantile)];
  const extra = { latency_quantiles: quantiles.map((quantile, place) => [quantile, rising[place]]) };
  if (lane.startsWith("sustained")) extra.wal_bytes_over_time = Array.from({ length: 40 }, (_, second) => [second / 2, ((second * 800000) % (8e6 * (1 + p50 / 100))) + 1e5]);
  if (lane === "caller_blocking") extra.longest_gap_us = p50 * 40;
  const busy = /^busy_(\d+)_hold_(\d+)/.exec(lane);
  if (busy) Object.assign(extra, { mode: peer, processes: +busy[1], hold_us: +busy[2], think_us: 0, turns_min: peer === "busy-turnstile" ? 990 : 0, turns_max: 1000 });
  if (lane.startsWith("busy_study")) Object.assign(extra, { mode: peer, processes: 8, threads: 4, slow: 2, parent_ms: 2001, fastest_ms: 800, slowest_ms: 1800, script_ms: 2003, delta: 201 });
  return { lane, peer, run, order, ops: 10000, seconds: p50 / 100, p50_us: of(0.5), p90_us: of(0.9), p95_us: of(0.95), p99_us: of(0.99), p999_us: of(0.999), max_us: of(1), work_us: null, cpu_seconds: 0.4, peak_rss_bytes: 9e6 + p50 * 1e4, extra };
}

function result(kind, sides, runs, factor) {
  const random = sequence(7);
  const results = [];
  for (let run = 0; run < runs; run += 1) {
    for (const [lane, , group, , p50, unit] of lanes) {
      const able = Object.keys(sides).filter((peer) => (peer !== "raw-held" || group === "reads") && (group === "busy") === peer in modes);
      const order = run % 2 === 0 ? able : able.toReversed();
      order.forEach((peer, place) => results.push(row(lane, unit, peer, run, place, p50 * sides[peer] * factor(lane, peer), random)));
    }
  }
  const versions = Object.fromEntries(Object.keys(sides).map((peer) => [peer, { version: `${peer} 1.0`, sqlite: "3.54.1", compile_options: ["THREADSAFE=2", "DEFAULT_MEMSTATUS=0"], language: peer.startsWith("py") ? "python" : "rust" }]));
  return {
    format: 1, id: `${kind}-1`, started: "2020-01-02T03:04:05Z", kind,
    machine: { cpu: "A Processor With A Long Name @ 2.60GHz", cores: 2, memory_gib: 8, os: "A Linux", kernel: "6.1", arch: "x86_64", filesystem: "ext4" },
    versions, flags: { rustc: "rustc 1.95.0", sqlite_flags: "-DHAVE_FDATASYNC=1" }, commit: "0123456789abcdef0123456789abcdef01234567",
    dirty: true, partial: kind === "run", quick: true, runs, notes: [],
    paces: { sustained_8k: { of: "flat_out_8k", share: 0.5, floor_per_second: 24000 } },
    lanes: Object.fromEntries(lanes.map(([name, tag, group, about, , ops_unit]) => [name, { about, tag, group, ops_unit }])), results,
  };
}

/** Peers beside each other; flatwater beats raw in one lane, sqlx failed in one with a text that tries to leave its place. */
export function run() {
  const one = result("run", { ...peers, ...modes }, 5, (lane, peer) => (lane === "point_query" && peer === "flatwater" ? 0.2 : 1));
  one.results = one.results.filter((row) => !(row.lane === "query_10k" && row.peer === "sqlx"));
  one.results.push({ lane: "query_10k", peer: "sqlx", run: 0, order: 0, error: "it crashed: </script><b>bold</b>" });
  return one;
}

/** Two revisions: one lane slower, one faster, the rest as before. */
export function ab() {
  const factor = (lane, side) => (side === "base" ? 1 : { insert_sequential: 1.3, point_query: 0.7 }[lane] ?? 1);
  return result("ab", { base: 1, candidate: 1 }, 5, factor);
}

const entry = (number, title, status) => ({
  number, title, status, opened: "2020-01-01", decided: "2020-01-02", lanes: ["point_query"],
  decision: `${status === "accepted" ? "Accepted" : "Rejected"}, because the lane said so.`,
  record: `00${number}.md`, aggregates: `00${number}.json`,
});

export function experiments() {
  return [entry(1, "A first try", "accepted"), entry(2, "A second try", "rejected"), entry(3, "A third try", "rejected")];
}

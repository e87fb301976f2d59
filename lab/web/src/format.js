// Figures as text. Three digits that count, a unit that suits.

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

function scaled(value, steps) {
  const [factor, unit] = steps.find(([factor]) => Math.abs(value) >= factor) ?? steps.at(-1);
  return `${plain.format(value / factor)} ${unit}`;
}

export function duration(us) {
  if (us === 0) return "0 us";
  return scaled(us, [[1e6, "s"], [1e3, "ms"], [1, "us"], [1e-3, "ns"]]);
}

export function bytes(value) {
  return scaled(value, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
}

export function rate(value, unit = "ops") {
  return `${count(value)} ${unit || "ops"}/s`;
}

/** A large number, without its unit. */
export function count(value) {
  return value >= 1e6 ? `${plain.format(value / 1e6)} M` : value >= 1e4 ? `${plain.format(value / 1e3)} k` : plain.format(value);
}

/** A figure by the name of its metric. */
export function figure(metric, value, unit) {
  if (value == null) return "-";
  if (metric.endsWith("per_second")) return rate(value, unit);
  if (metric.endsWith("_us")) return duration(value);
  if (metric.endsWith("_ms")) return duration(value * 1e3);
  if (metric.includes("bytes")) return bytes(value);
  if (metric.endsWith("seconds")) return duration(value * 1e6);
  return plain.format(value);
}

export function ratio(value) {
  return value == null ? "-" : `${value >= 100 ? Math.round(value) : value.toPrecision(value >= 10 ? 3 : 2 + (value >= 1))}x`;
}

export function percent(share) {
  return share == null ? "-" : `${plain.format(share * 100)} %`;
}

const names = { ops_per_second: "rate", p50_us: "p50", p90_us: "p90", p95_us: "p95", p99_us: "p99", p999_us: "p99.9", max_us: "max", work_us: "work", cpu_seconds: "CPU", peak_rss_bytes: "peak memory" };

/** The name of a metric as a heading. */
export function metricName(metric) {
  return names[metric] ?? metric.replace(/_(us|ms|bytes)$/, "").replaceAll("_", " ");
}

export function day(time) {
  return time.slice(0, 10);
}

export function verdictName(verdict) {
  return verdict.replaceAll("_", " ");
}

// Measuring one lane: latencies, wall time and CPU time of its timed part.
//
// Owns: `Timing` while a lane runs, quantiles, and what the operating system counts for this process. Latencies are
// kept as they are and sorted at the end, so quantiles are exact. Leaves out: what a lane does.

import { readFileSync, writeFileSync } from "node:fs";

const FIGURES = [["p50", 0.5], ["p90", 0.9], ["p95", 0.95], ["p99", 0.99], ["p999", 0.999]];
const now = process.hrtime.bigint;

/** The latency in microseconds that the fraction `quantile` of the calls, in nanoseconds, did not exceed. */
export function quantileUs(ordered, quantile) {
  const at = Math.ceil(Number((quantile * ordered.length).toFixed(6))) - 1;
  return ordered[Math.max(at, 0)] / 1000;
}

/** About 40 points of the distribution, denser towards the tail, the last one the maximum. */
export function curve(ordered) {
  const body = Array.from({ length: 19 }, (_, step) => step * 0.05);
  const tail = [1, 2, 3].flatMap((decade) =>
    [0.2, 0.35, 0.5, 0.65, 0.8, 1].map((part) => 1 - 10 ** -(decade + part)));
  // A quantile beyond the number of calls is the maximum, which stands last anyway.
  const points = [...body, ...tail, 0.99995, 0.99999].filter((quantile) => (1 - quantile) * ordered.length >= 1);
  return [...points.map((quantile) => [quantile, quantileUs(ordered, quantile)]), [1, ordered.at(-1) / 1000]];
}

export const ordered = (samples) => Float64Array.from(samples).sort();

/** Calls and keeps how long it took. */
export function timed(samples, call) {
  const began = now();
  const answer = call();
  samples.push(Number(now() - began));
  return answer;
}

/** A lane's timed part. It begins when it is made. */
export class Timing {
  samples = [];
  extra = {};
  #wall = 0n;
  #cpu = 0;
  #since;

  constructor() {
    this.resume();
  }

  resume() {
    this.#since = [now(), process.cpuUsage()];
  }

  /** What follows is not timed, such as making the table empty again. */
  pause() {
    const [began, cpu] = this.#since;
    this.#wall += now() - began;
    const { user, system } = process.cpuUsage(cpu);
    this.#cpu += (user + system) / 1e6;
  }

  time(call) {
    return timed(this.samples, call);
  }

  /** Median and tail of a kind of call of this lane, as `name_p50_us` and so on. */
  kind(name, samples) {
    if (samples.length === 0) return;
    const sorted = ordered(samples);
    for (const [word, quantile] of [["p50", 0.5], ["p95", 0.95], ["p99", 0.99]]) {
      this.extra[`${name}_${word}_us`] = quantileUs(sorted, quantile);
    }
    this.extra[`${name}_max_us`] = sorted.at(-1) / 1000;
  }

  /**
   * Ends the timed part, in which `ops` operations were done, and answers its figures. `floor` are the latencies of a
   * call that does nothing, to tell work from dispatch.
   */
  end(ops, floor = null) {
    this.pause();
    const sorted = ordered(this.samples);
    const figures = Object.fromEntries(FIGURES.map(([word, quantile]) => [`${word}_us`, quantileUs(sorted, quantile)]));
    return {
      ops,
      seconds: Number(this.#wall) / 1e9,
      ...figures,
      max_us: sorted.at(-1) / 1000,
      work_us: floor && figures.p50_us - quantileUs(ordered(floor), 0.5),
      cpu_seconds: this.#cpu,
      peak_rss_bytes: peakRss(),
      extra: { ...this.extra, latency_quantiles: curve(sorted) },
    };
  }
}

/**
 * The largest resident size so far, in bytes. Where the kernel tells it for this program alone that figure is used;
 * `getrusage` may include the program that started this one.
 */
export const peakRss = () => status("VmHWM") ?? process.resourceUsage().maxRSS * 1024;

/** The resident size now, in bytes, where the kernel tells it. */
export const rss = () => status("VmRSS");

/** Makes the peak start over at the present size. Answers whether it could. */
export function resetPeak() {
  try {
    writeFileSync("/proc/self/clear_refs", "5");
    return true;
  } catch {
    return false;
  }
}

function status(key) {
  try {
    const line = new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(readFileSync("/proc/self/status", "utf8"));
    return line && Number(line[1]) * 1024;
  } catch {
    return null;
  }
}

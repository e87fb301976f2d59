// Several processes that write to one file: the turns of each by mode, and their waits by how many there are.

import { el, section, table, disclosure, chart } from "./dom.js";
import { turns, waits } from "./charts.js";
import { count, duration, figure } from "./format.js";

const percentiles = [["p50_us", "median"], ["p99_us", "p99"], ["p999_us", "p99.9"], ["max_us", "longest"]];

/** The section, if the result has such lanes. */
export function processes(result) {
  const lanes = result.lanes.filter((lane) => lane.group === "busy" && number(lane, "processes") != null);
  if (lanes.length === 0) return null;
  const [first, ...others] = settings(lanes.filter((lane) => number(lane, "threads") == null));
  const scenarios = lanes.filter((lane) => number(lane, "threads") != null);
  return section(
    "processes",
    "Several processes on one file",
    el("p", {}, "Processes that write as fast as they can, by how each of them waits for the lock. A turn is one committed transaction. If the lock goes round, all have as many turns, and the longest wait is about as many transactions as there are processes."),
    first ? el("div", { class: "cards" }, cards(first)) : null,
    others.length > 0 ? disclosure(`Other settings (${others.length})`, () => others.flatMap((one) => [el("h3", {}, one.title), el("div", { class: "cards" }, cards(one))])) : null,
    scenarios.length > 0 ? disclosure("Scenarios of the published study", () => study(scenarios)) : null,
  );
}

/** A figure that is the same for every peer of a lane. */
function number(lane, name) {
  return lane.peers.find((peer) => peer.figures[name])?.figures[name].median;
}

/** The lanes that differ only in how many processes there are; the one that holds the lock for longest comes first. */
function settings(lanes) {
  const found = new Map();
  for (const lane of lanes) {
    const [hold, think, mixed] = [number(lane, "hold_us"), number(lane, "think_us"), lane.name.startsWith("busy_mixed_")];
    const title = `${mixed ? "Half of them plain SQLite, h" : "H"}eld for ${duration(hold)}, ${duration(think)} between turns`;
    if (!found.has(title)) found.set(title, { title, rank: (mixed ? 1e9 : 0) + think * 1e3 - hold, lanes: [] });
    found.get(title).lanes.push(lane);
  }
  const all = [...found.values()].sort((one, other) => one.rank - other.rank);
  for (const one of all) one.lanes.sort((first, second) => number(first, "processes") - number(second, "processes"));
  return all;
}

function cards({ title, lanes }) {
  const most = lanes.at(-1);
  const peers = [...new Set(lanes.flatMap((lane) => lane.peers.filter((peer) => peer.runs > 0).map((peer) => peer.peer)))];
  const cell = (lane, peer) => lane.peers.find((one) => one.peer === peer)?.figures;
  const rows = (caption, shown) => table(caption, ["processes", ...peers], lanes.map((lane) => [`${number(lane, "processes")}`, ...peers.map((peer) => shown(cell(lane, peer)))]));
  const range = (figures) => (figures ? `${count(figures.turns_min.median)} to ${count(figures.turns_max.median)}` : "\u2013");
  const drawn = lanes.length > 1 ? percentiles : [];
  return [
    el(
      "article",
      { class: "lane" },
      el("header", {}, el("h4", {}, `${number(most, "processes")} processes`), el("p", { class: "about" }, title)),
      chart("Turns of each process, from the fewest to the most", (width) => turns(most, width)),
      disclosure("Figures", () => [rows(`Turns: fewest to most. ${title}`, range), rows(`All turns. ${title}`, (figures) => figure("ops_per_second", figures?.ops_per_second.median, "turns"))]),
    ),
    el(
      "article",
      { class: "lane" },
      el("header", {}, el("h4", {}, "Waits for the lock"), el("p", { class: "about" }, title)),
      drawn.map(([metric, name]) => chart(`Wait by number of processes: ${name}`, (width) => waits(points(lanes, metric), width))),
      disclosure("Figures", () => percentiles.map(([metric, name]) => rows(`Wait: ${name}. ${title}`, (figures) => figure(metric, figures?.[metric].median)))),
    ),
  ];
}

function points(lanes, metric) {
  const of = (lane) => lane.peers.filter((peer) => peer.figures[metric]?.median > 0).map((peer) => ({ peer: peer.peer, x: number(lane, "processes"), y: peer.figures[metric].median }));
  return lanes.flatMap(of).map((point) => ({ ...point, title: `${point.peer}, ${point.x} processes: ${duration(point.y)}` }));
}

/** The study's own table, in milliseconds. */
function study(lanes) {
  const whole = (figures, name) => `${Math.round(figures[name].median)}`;
  const row = (lane, { peer, figures }) => {
    const [children, threads, slow] = ["processes", "threads", "slow"].map((name) => figures[name].median);
    return [peer, `${children + threads + slow} (${children}/${threads}/${slow})`, ...["parent_ms", "fastest_ms", "slowest_ms", "script_ms", "delta"].map((name) => whole(figures, name))];
  };
  const rows = lanes.flatMap((lane) => lane.peers.filter((peer) => peer.figures.slowest_ms).map((peer) => row(lane, peer)));
  return table("Milliseconds. Contention: children, threads of each, slow transactions of the parent", ["mode", "contention", "parent", "fastest", "slowest", "script", "delta"], rows);
}

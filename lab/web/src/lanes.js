// The lanes: an overview beside the floor, then every lane with its charts and figures.

import { el, section, table, disclosure, chart } from "./dom.js";
import { distribution, lanePeers, overTime, scaling } from "./charts.js";
import { count, figure, metricName, percent, rate, ratio } from "./format.js";

/** The headline of each release lane, peers side by side. */
export function overview(result) {
  const lanes = result.lanes.filter((lane) => lane.tag === "release");
  const shown = lanes.length > 0 ? lanes : result.lanes;
  const peers = [...result.peers].sort((one, other) => place(one) - place(other));
  const rows = shown.map((lane) => [
    el("span", {}, el("a", { href: `#lane-${lane.name}` }, lane.name), el("br"), el("span", { class: "muted" }, headlineName(lane))),
    ...peers.map((name) => overviewCell(lane, lane.peers.find((peer) => peer.peer === name))),
  ]);
  return section(
    "overview",
    "Side by side",
    el("p", {}, `The figure each lane exists for, the middle of its runs, and its ratio to ${result.floor}; where many ask at once, to ${result.floor} alone. A rate is better when it is higher, everything else when it is lower. Better than the floor is marked \u25b2.`),
    table("Headline figures of the lanes", ["lane", ...peers], rows),
  );
}

/** The floor first, Flatwater beside it, then the others as they are. */
function place(peer) {
  const at = ["raw", "base", "flatwater", "candidate", "raw-held"].indexOf(peer);
  return at < 0 ? 9 : at;
}

function headlineName(lane) {
  return lane.headline.endsWith("per_second") ? `${lane.ops_unit || "ops"}/s` : metricName(lane.headline);
}

function overviewCell(lane, peer) {
  if (!peer) return el("span", { class: "muted", title: "this peer does not have the lane" }, "\u2013");
  if (!peer.figures[lane.headline]) return el("span", { class: "failed", title: peer.error ?? "" }, peer.error ? "failed" : "\u2013");
  const { median } = peer.figures[lane.headline];
  const held = peer.beats_floor && peer.to_held_floor != null && peer.peer !== "raw-held";
  return el(
    "span",
    {},
    lane.headline.endsWith("per_second") ? count(median) : figure(lane.headline, median),
    el("br"),
    peer.to_floor == null ? null : el("span", { class: "muted" }, `${ratio(peer.to_floor)}${peer.beats_floor ? " \u25b2" : ""}`),
    held ? [el("br"), el("span", { class: "muted" }, `${ratio(peer.to_held_floor)} of raw-held`)] : null,
  );
}

/** All lanes by tag and group. */
export function lanes(result) {
  const tagged = (tag) => result.lanes.filter((lane) => (lane.tag || "focused") === tag);
  const focused = tagged("focused");
  return section(
    "lanes",
    "Lanes",
    el("p", {}, "The dot is the middle of the runs, the band behind it their range, the thin line reaches to p99. Scales are logarithmic."),
    groups(tagged("release")),
    focused.length === 0 ? null : disclosure(`Focused lanes (${focused.length})`, () => groups(focused), { open: tagged("release").length === 0 }),
  );
}

function groups(lanes) {
  const names = [...new Set(lanes.map((lane) => lane.group))];
  return names.flatMap((group) => [el("h3", {}, group || "other"), el("div", { class: "cards" }, lanes.filter((lane) => lane.group === group).map(card))]);
}

function card(lane) {
  const measured = lane.peers.filter((peer) => peer.runs > 0);
  const failed = lane.peers.filter((peer) => peer.error);
  const heading = el("header", {}, el("h4", {}, lane.name), el("p", { class: "about" }, lane.about));
  const series = [...new Set(measured.flatMap((peer) => Object.keys(peer.over_time)))];
  return el(
    "article",
    { id: `lane-${lane.name}`, class: "lane" },
    heading,
    measured.length > 0 ? chart(`${metricName(lane.headline)}${lane.headline === "p50_us" ? " to p99" : ""}, and its ratio to ${floorName(lane)}`, (width) => lanePeers(lane, width)) : null,
    measured.some((peer) => peer.latency_quantiles.length > 1) ? chart("Share of operations that took at most so long", (width) => distribution(lane, width)) : null,
    series.map((name) => chart(metricName(name), (width) => overTime(lane, name, width))),
    heldNote(lane),
    failed.map((peer) => el("p", { class: "failed" }, `${peer.peer} failed: ${peer.error}`)),
    measured.length > 0 ? disclosure("Figures", () => figures(lane, measured)) : null,
  );
}

function floorName(lane) {
  return lane.floor_lane && lane.floor_lane !== lane.name ? `the floor in ${lane.floor_lane}` : "the floor";
}

/** Whoever beats the floor is named beside the floor that keeps its snapshot too. */
function heldNote(lane) {
  const beating = lane.peers.filter((peer) => peer.beats_floor && peer.to_held_floor != null && !peer.peer.startsWith("raw"));
  if (beating.length === 0) return null;
  const parts = beating.map((peer) => `${peer.peer} is ${ratio(peer.to_floor)} of raw and ${ratio(peer.to_held_floor)} of raw-held`);
  return el("p", { class: "note" }, `${parts.join("; ")}. raw-held reads inside one open transaction, as a kept snapshot does.`);
}

function figures(lane, peers) {
  const metrics = [...new Set(peers.flatMap((peer) => Object.keys(peer.figures)))];
  const usual = ["ops_per_second", "p50_us", "p90_us", "p95_us", "p99_us", "p999_us", "max_us", "work_us", "cpu_seconds", "peak_rss_bytes"];
  metrics.sort((one, other) => (usual.indexOf(one) + 100) % 100 - (usual.indexOf(other) + 100) % 100);
  const rows = metrics.map((metric) => [metricName(metric), ...peers.map((peer) => spread(metric, peer.figures[metric], lane.ops_unit))]);
  return table(`${lane.name}: the middle of the runs, and their coefficient of variation`, ["", ...peers.map((peer) => `${peer.peer} (${peer.runs})`)], rows);
}

function spread(metric, spread, unit) {
  if (!spread) return "\u2013";
  return el("span", {}, figure(metric, spread.median, unit), el("br"), el("span", { class: "muted" }, spread.cv == null ? "" : `CV ${percent(spread.cv)}`));
}

/** Rates against concurrency. */
export function concurrency(result) {
  if (result.scalings.length === 0) return null;
  const cards = result.scalings.map((one) => {
    const at = [...new Set(one.points.map((point) => point.at))];
    const peers = [...new Set(one.points.map((point) => point.peer))];
    const cell = (peer, at) => one.points.find((point) => point.peer === peer && point.at === at);
    return el(
      "article",
      { class: "lane" },
      el("header", {}, el("h4", {}, one.family)),
      chart("Rate against how many ask at once", (width) => scaling(one, result.floor, width)),
      disclosure("Figures", () =>
        table(`${one.family}: rate by how many ask at once`, ["at once", ...peers], at.map((number) => [`${number}`, ...peers.map((peer) => (cell(peer, number) ? rate(cell(peer, number).rate.median, one.ops_unit) : "\u2013"))])),
      ),
    );
  });
  return section("concurrency", "Rate against concurrency", el("div", { class: "cards" }, cards));
}

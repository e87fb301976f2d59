// Two revisions beside each other, and the experiments with their filter.

import { el, section, table, disclosure, chart } from "./dom.js";
import { ratios } from "./charts.js";
import { day, figure, metricName, percent, verdictName } from "./format.js";

/** The verdicts of an `ab`. */
export function comparison(compared) {
  const deciding = (lane) => ["p50_us", "ops_per_second"].map((name) => lane.metrics.find((metric) => metric.metric === name)).find(Boolean);
  const rows = compared.lanes.filter(deciding).map((lane) => ({ ...deciding(lane), lane: lane.lane, verdict: lane.verdict }));
  return section(
    "verdicts",
    "Verdicts",
    el("p", {}, `${compared.candidate} against ${compared.base}: the ratio of the medians of p50 with its 95 % interval. Left of the line is faster.`),
    compared.notes.map((note) => el("p", { class: "note" }, note)),
    compared.veto ? el("p", { class: "alarm", role: "note" }, compared.veto) : null,
    rows.some((row) => row.ratio != null) ? chart("Candidate over base, p50", (width) => ratios(rows, width)) : null,
    el("ul", { class: "reasons" }, compared.lanes.map((lane) => el("li", {}, el("strong", {}, lane.lane), lane.guard ? " (guard)" : "", `: ${verdictName(lane.verdict)}. `, el("span", { class: "muted" }, lane.reason)))),
    disclosure("Every metric", () => compared.lanes.filter((lane) => lane.metrics.length > 0).map(metrics)),
  );
}

function metrics(lane) {
  const interval = (metric) => (metric.interval ? `${metric.interval[0].toFixed(3)} to ${metric.interval[1].toFixed(3)}` : "-");
  const rows = lane.metrics.map((metric) => [
    metricName(metric.metric),
    figure(metric.metric, metric.base),
    figure(metric.metric, metric.candidate),
    metric.ratio?.toFixed(3) ?? "-",
    interval(metric),
    percent(metric.threshold),
    `${percent(metric.base_cv)} / ${percent(metric.candidate_cv)}`,
    verdictName(metric.verdict) + (metric.drift ? ", drift" : ""),
  ]);
  return table(lane.lane, ["metric", "base", "candidate", "ratio", "95 % interval", "takes", "CV", "verdict"], rows);
}

/** The experiments, with a filter by what became of them. */
export function experiments(entries) {
  if (entries.length === 0) return null;
  const list = el("ol", { class: "experiments" });
  const count = el("p", { class: "muted", role: "status" });
  const show = (wanted) => {
    const shown = entries.filter((entry) => wanted === "all" || entry.status === wanted);
    list.replaceChildren(...shown.map(experiment));
    count.textContent = `${shown.length} of ${entries.length}`;
  };
  const choice = (value) =>
    el("label", {}, el("input", { type: "radio", name: "verdict", value, checked: value === "all" }), el("span", {}, value));
  const filter = el("fieldset", { class: "filter" }, el("legend", {}, "Verdict"), ["all", "accepted", "rejected"].map(choice));
  filter.addEventListener("change", (event) => show(event.target.value));
  show("all");
  return section("experiments", "Experiments", filter, count, list);
}

function experiment(entry) {
  const mark = entry.status === "accepted" ? "\u25b2" : "\u2715";
  return el(
    "li",
    { "data-status": entry.status },
    el("h3", {}, el("span", { class: "muted" }, String(entry.number).padStart(3, "0")), ` ${entry.title}`),
    el("p", { class: `status ${entry.status}` }, `${mark} ${entry.status}`, el("span", { class: "muted" }, ` ${day(entry.decided)}, opened ${day(entry.opened)}`)),
    el("p", {}, entry.decision),
    el("p", { class: "muted" }, `${entry.lanes.join(", ")} \u00b7 ${[entry.record, entry.aggregates, entry.patch].filter(Boolean).join(", ")}`),
  );
}

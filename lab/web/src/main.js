// The page: one result at a time, the experiments below it.

import "../page.css";
import { el, section, table, disclosure } from "./dom.js";
import { rate } from "./format.js";
import { concurrency, lanes, overview } from "./lanes.js";
import { processes } from "./processes.js";
import { comparison, experiments } from "./verdicts.js";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

const warnings = [
  ["quick", "Quick", "The small form of the lanes: it shows that they work, not how fast."],
  ["partial", "Partial", "The run was ended before its plan."],
  ["dirty", "Dirty", "The working tree had changes that no commit holds."],
];

function head(result) {
  const { machine } = result;
  const facts = [machine.cpu, `${machine.cores} cores`, `${machine.memory_gib} GiB`, machine.os, machine.filesystem];
  const commit = result.commit ? `commit ${result.commit.slice(0, 10)}` : "no commit";
  return el(
    "header",
    { class: "head" },
    el("h1", {}, "Flatwater lab"),
    el("p", {}, `${result.started.slice(0, 16).replace("T", " ")} UTC \u00b7 ${commit} \u00b7 ${result.runs} ${result.runs === 1 ? "run" : "runs"} a side`),
    el("p", { class: "muted" }, facts.join(" \u00b7 ")),
    warnings.filter(([flag]) => result[flag]).map(([flag, name, text]) => el("p", { class: "alarm", role: "note", "data-flag": flag }, el("strong", {}, name), ` ${text}`)),
    result.notes.map((note) => el("p", { class: "note" }, note)),
    Object.entries(result.paces ?? {}).map(([lane, pace]) => el("p", { class: "note" }, paced(lane, pace))),
  );
}

function paced(lane, { of, share, floor_per_second: floor }) {
  return `${lane} is paced at ${rate(share * floor)}, ${share} of the ${rate(floor)} that raw reaches in ${of} on this machine.`;
}

const SETTINGS =
  "Every peer has WAL, synchronous NORMAL (FULL in lanes named _full), a cache of 16 MiB, no mapped file and foreign keys on. temp_store and cache_spill are what each library has by default: Flatwater keeps temporary data in memory and its writer does not spill; the others have SQLite's defaults.";

function machine(result) {
  const { machine, flags } = result;
  const facts = [
    ["processor", machine.cpu],
    ["cores, memory", `${machine.cores}, ${machine.memory_gib} GiB`],
    ["system", `${machine.os}, kernel ${machine.kernel}, ${machine.arch}`],
    ["file system of the databases", machine.filesystem],
    ["compiler", flags.rustc],
    ["SQLite's build flags here", flags.sqlite_flags || "none"],
    ["commit", `${result.commit ?? "none"}${result.dirty ? ", with changes" : ""}`],
  ];
  const versions = Object.entries(result.versions);
  return section(
    "machine",
    "Machine and versions",
    el("p", { class: "note" }, SETTINGS),
    el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    table("Peers", ["peer", "library", "SQLite", "language"], versions.map(([peer, version]) => [peer, version.version, version.sqlite, version.language]), { numeric: false }),
    versions.map(([peer, version]) => disclosure(`Compile options of ${peer}`, () => el("p", { class: "options" }, (version.compile_options ?? []).join(" ")))),
  );
}

function navigation(sections) {
  const links = sections.map((part) => el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
  return el("nav", { "aria-label": "Sections" }, links);
}

function chooser(chosen) {
  if (data.results.length < 2) return null;
  const name = (result) => `${result.kind === "ab" ? "two revisions" : "peers"}, ${result.started.slice(0, 16).replace("T", " ")}`;
  const select = el("select", { id: "result" }, data.results.map((result, place) => el("option", { value: place, selected: place === chosen }, name(result))));
  select.addEventListener("change", () => show(Number(select.value)));
  return el("p", { class: "chooser" }, el("label", { for: "result" }, "Result "), select);
}

function show(chosen) {
  const result = data.results[chosen];
  const compared = data.comparisons.find((one) => one.id === result.id);
  const sections = [compared && comparison(compared), overview(result), concurrency(result), processes(result), lanes(result), experiments(data.experiments), machine(result)].filter(Boolean);
  const foot = el("footer", { class: "muted" }, `Made ${data.generated.slice(0, 16).replace("T", " ")} UTC. How it is measured stands in lab/METHOD.md, what is not measured in lab/SCOPE.md.`);
  page.replaceChildren(...[head(result), chooser(chosen), navigation(sections), ...sections, foot].filter(Boolean));
}

show(0);

// The drawings. Each takes plain data and a width and answers an SVG; Observable Plot draws.

import * as Plot from "@observablehq/plot";
import { count, figure, duration, rate, ratio, bytes } from "./format.js";
import { look, hollow, verdicts } from "./look.js";

const base = (width) => ({
  width,
  style: { background: "none", color: "var(--ink)", fontFamily: "inherit", fontSize: "12px", overflow: "visible" },
  color: { type: "identity" },
  symbol: { type: "identity" },
});

/** Room for names, which shrinks on a phone. */
const left = (width, names) => Math.min(Math.max(...names.map((name) => name.length)) * 7 + 14, Math.max(70, width * 0.36));

/** The dot of one peer, drawn by area or line as its shape wants. */
function dots(data, channels) {
  const split = (wanted) => data.filter((d) => hollow(look(d.peer).symbol) === wanted);
  const common = { r: 4.5, symbol: (d) => look(d.peer).symbol, ...channels };
  const colour = (d) => look(d.peer).colour;
  return [
    Plot.dot(split(false), { ...common, fill: colour, stroke: "var(--paper)", strokeWidth: 1 }),
    Plot.dot(split(true), { ...common, stroke: colour, strokeWidth: 1.6, fill: "none" }),
  ];
}

/** One, two or five times a power of ten: the next below or above. */
function round(value, up) {
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 2, 5, 10].map((step) => step * power);
  const near = 1 + 1e-9;
  return up ? steps.find((step) => step * near >= value) : steps.findLast((step) => step <= value * near);
}

/** A log axis from one round figure to another, with as many ticks as there is room for. */
function logTicks(values, room, format) {
  const known = values.filter((value) => value > 0);
  let domain = [round(Math.min(...known), false), round(Math.max(...known), true)];
  if (domain[0] === domain[1]) domain = [round(domain[0] / 1.5, false), round(domain[1] * 1.5, true)];
  const powers = [];
  for (let power = Math.floor(Math.log10(domain[0])); power <= Math.ceil(Math.log10(domain[1])); power += 1) powers.push(10 ** power);
  const within = (tick) => tick >= domain[0] * 0.999 && tick <= domain[1] * 1.001;
  const fine = powers.flatMap((power) => [1, 2, 5].map((step) => +(step * power).toPrecision(1))).filter(within);
  const coarse = powers.filter(within);
  const most = Math.max(2, Math.floor(room / 62));
  const chosen = fine.length <= most || coarse.length < 2 ? fine : coarse;
  const step = Math.ceil(chosen.length / most);
  return { type: "log", domain, ticks: chosen.filter((_, place) => place % step === 0), tickFormat: format, label: null, inset: 5 };
}

/** A lane's headline, peer by peer, with the range over the runs; latencies with their way to p99. */
export function lanePeers(lane, width) {
  const latency = lane.headline === "p50_us";
  const data = lane.peers
    .filter((peer) => peer.figures[lane.headline])
    .map((peer) => {
      const own = peer.figures[lane.headline];
      return { peer: peer.peer, value: own.median, low: own.low, high: own.high, tail: latency ? peer.figures.p99_us.median : null, ratio: peer.to_floor };
    });
  const text = (d) => figure(lane.headline, d.value, lane.ops_unit);
  const right = Math.max(...data.map((d) => text(d).length)) * 6.6 + 68;
  const marginLeft = left(width, data.map((d) => d.peer));
  const format = (value) => (lane.headline.endsWith("per_second") ? count(value) : figure(lane.headline, value, ""));
  const x = logTicks(data.flatMap((d) => [d.low, d.high, d.tail ?? d.value]), width - marginLeft - right, format);
  return Plot.plot({
    ...base(width),
    height: data.length * 24 + 34,
    marginLeft,
    marginRight: right,
    marginTop: 6,
    marginBottom: 26,
    x,
    y: { domain: data.map((d) => d.peer), label: null, tickSize: 0, padding: 0.4 },
    marks: [
      Plot.gridX(x.ticks, { stroke: "var(--grid)", strokeOpacity: 1 }),
      latency ? Plot.ruleY(data, { y: "peer", x1: "value", x2: "tail", stroke: (d) => look(d.peer).colour, strokeOpacity: 0.45 }) : null,
      latency ? Plot.tickX(data, { y: "peer", x: "tail", stroke: (d) => look(d.peer).colour, inset: 4 }) : null,
      Plot.ruleY(data, { y: "peer", x1: "low", x2: "high", stroke: (d) => look(d.peer).colour, strokeWidth: 5, strokeOpacity: 0.25 }),
      ...dots(data, { y: "peer", x: "value", title: (d) => `${d.peer}: ${text(d)}` }),
      Plot.text(data, { y: "peer", text, frameAnchor: "right", dx: right - 56, textAnchor: "end", fill: "var(--ink)", fontWeight: (d) => (look(d.peer).ours ? 650 : 400) }),
      Plot.text(data, { y: "peer", text: (d) => ratio(d.ratio), frameAnchor: "right", dx: right, textAnchor: "end", fill: "var(--muted)" }),
    ],
  });
}

/** Moves labels that stand at one x apart, in their order and within the plot. */
function apart(options, gap = 13) {
  return Plot.initializer(options, (data, facets, channels, scales, { height, marginBottom }) => {
    const Y = Array.from(channels.y.value, (value) => scales.y(value));
    for (const facet of facets) {
      const order = [...facet].sort((a, b) => Y[a] - Y[b]);
      for (let rank = 1; rank < order.length; rank += 1) Y[order[rank]] = Math.max(Y[order[rank]], Y[order[rank - 1]] + gap);
      let lowest = height - marginBottom;
      for (const place of order.reverse()) {
        Y[place] = Math.min(Y[place], lowest);
        lowest = Y[place] - gap;
      }
    }
    return { channels: { y: { value: Y } } };
  });
}

/** Lines with a name at their end. `points` have peer, x, y; `marked` says which get the peer's symbol. */
function lines(points, marked, width, options, reference = null) {
  const peers = [...new Set(points.map((point) => point.peer))];
  const farthest = Math.max(...points.map((point) => point.x));
  const ends = peers.map((peer) => points.filter((point) => point.peer === peer).reduce((one, other) => (other.x >= one.x ? other : one)));
  if (reference) ends.push({ ...reference, x: farthest });
  const right = Math.min(Math.max(...ends.map(({ peer }) => peer.length)) * 7 + 16, width * 0.36);
  const axes = options(width - right - 52);
  return Plot.plot({
    ...base(width),
    height: Math.max(230, peers.length * 15 + 70),
    marginRight: right,
    marginLeft: 52,
    marginBottom: 38,
    marginTop: 10,
    ...axes,
    marks: [
      Plot.gridY(Array.isArray(axes.y.ticks) ? axes.y.ticks : undefined, { stroke: "var(--grid)", strokeOpacity: 1, ...(Array.isArray(axes.y.ticks) ? {} : { ticks: axes.y.ticks }) }),
      reference ? Plot.ruleY([reference.y], { stroke: "var(--ink)", strokeDasharray: "4 4" }) : null,
      ...peers.map((peer) =>
        Plot.lineY(points.filter((point) => point.peer === peer), {
          x: "x",
          y: "y",
          stroke: look(peer).colour,
          strokeDasharray: look(peer).dash,
          strokeWidth: look(peer).ours ? 2.2 : 1.4,
        }),
      ),
      ...dots(points.filter(marked), { x: "x", y: "y", r: 3.8, title: "title" }),
      Plot.text(ends, apart({ x: "x", y: "y", text: "peer", dx: 9, textAnchor: "start", fill: (d) => (d.look ?? look(d.peer)).colour, fontWeight: (d) => ((d.look ?? look(d.peer)).ours ? 650 : 400) })),
    ],
  });
}

const nines = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
const quantileName = (quantile) => (quantile === 1 ? "max" : `${+(quantile * 100).toPrecision(7)} %`);

/** The share of operations that are at most so slow, the tail drawn as wide as the middle. */
export function distribution(lane, width) {
  const below = Math.max(0, ...lane.peers.flatMap((peer) => peer.latency_quantiles.map(([quantile]) => quantile)).filter((quantile) => quantile < 1));
  const end = -Math.log10(1 - below) + 0.5;
  const place = (quantile) => (quantile >= 1 ? end : -Math.log10(1 - quantile));
  const points = lane.peers.flatMap((peer) =>
    peer.latency_quantiles
      .filter(([, us]) => us > 0)
      .map(([quantile, us]) => ({ peer: peer.peer, x: place(quantile), y: us, quantile, title: `${peer.peer}, ${quantileName(quantile)}: ${duration(us)}` })),
  );
  const shown = nines.filter((quantile) => place(quantile) < end - 0.2);
  const marked = (point) => point.quantile === 1 || shown.some((quantile) => Math.abs(quantile - point.quantile) < 1e-9);
  return lines(points, marked, width, (plot) => ({
    x: { domain: [0, end], ticks: [...shown.filter((quantile) => plot > 280 || [0.5, 0.99].includes(quantile)).map(place), end], tickFormat: (x) => (x === end ? "max" : quantileName(1 - 10 ** -x)), label: null },
    y: logTicks(points.map((point) => point.y), 300, duration),
  }));
}

/** Operations a second against how many ask at once. A floor that only one can ask is a line across. */
export function scaling(scaling, floor, width) {
  const several = (peer) => scaling.points.some((point) => point.peer === peer && point.at !== scaling.points.find((first) => first.peer === peer).at);
  const points = scaling.points
    .filter((point) => several(point.peer))
    .map(({ peer, at, rate: spread }) => ({ peer, x: at, y: spread.median, title: `${peer}, ${at} at once: ${rate(spread.median, scaling.ops_unit)}` }));
  const alone = several(floor) ? null : scaling.points.find((point) => point.peer === floor);
  const reference = alone && { peer: `${floor} alone`, y: alone.rate.median, look: look(floor) };
  const numbers = [...new Set(points.map((point) => point.x))].sort((one, other) => one - other);
  const axes = () => ({
    x: { type: "log", domain: [numbers[0], numbers.at(-1)], ticks: numbers, tickFormat: (at) => `${at}`, label: "at once", labelArrow: "none", labelAnchor: "center" },
    y: logTicks([...points.map((point) => point.y), ...(reference ? [reference.y] : [])], 300, count),
  });
  return lines(points, () => true, width, axes, reference);
}

/** From the fewest to the most turns that a process had, a bar for each mode. */
export function turns(lane, width) {
  const data = lane.peers.filter((peer) => peer.figures.turns_min).map(({ peer, figures }) => ({ peer, low: figures.turns_min.median, high: figures.turns_max.median }));
  const text = (d) => `${count(d.low)} to ${count(d.high)}`;
  const right = Math.max(...data.map((d) => text(d).length)) * 6.6 + 16;
  return Plot.plot({
    ...base(width),
    height: data.length * 24 + 34,
    marginLeft: left(width, data.map((d) => d.peer)),
    marginRight: right,
    marginTop: 6,
    marginBottom: 26,
    x: { domain: [0, Math.max(1, ...data.map((d) => d.high))], ticks: Math.max(2, Math.floor(width / 150)), tickFormat: count, label: null, inset: 5 },
    y: { domain: data.map((d) => d.peer), label: null, tickSize: 0, padding: 0.4 },
    marks: [
      Plot.gridX({ stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.ruleY(data, { y: "peer", x1: "low", x2: "high", stroke: (d) => look(d.peer).colour, strokeWidth: 5, strokeOpacity: 0.35 }),
      ...dots(data, { y: "peer", x: "low", title: (d) => `${d.peer}, fewest: ${count(d.low)}` }),
      ...dots(data, { y: "peer", x: "high", title: (d) => `${d.peer}, most: ${count(d.high)}` }),
      Plot.text(data, { y: "peer", text, frameAnchor: "right", dx: right, textAnchor: "end", fill: "var(--ink)", fontWeight: (d) => (look(d.peer).ours ? 650 : 400) }),
    ],
  });
}

/** Waits against how many processes there are. */
export function waits(points, width) {
  const numbers = [...new Set(points.map((point) => point.x))].sort((one, other) => one - other);
  return lines(points, () => true, width, () => ({
    x: { type: "log", domain: [numbers[0], numbers.at(-1)], ticks: numbers, tickFormat: (at) => `${at}`, label: "processes", labelArrow: "none", labelAnchor: "center" },
    y: logTicks(points.map((point) => point.y), 300, duration),
  }));
}

/** A series that a lane recorded over its seconds. */
export function overTime(lane, name, width) {
  const points = lane.peers.flatMap((peer) => (peer.over_time[name] ?? []).map(([x, y]) => ({ peer: peer.peer, x, y })));
  const format = name.includes("bytes") ? bytes : (value) => figure(name.replace(/_over_time$/, ""), value, "");
  return lines(points, () => false, width, () => ({
    x: { label: "seconds", labelArrow: "none", labelAnchor: "center", ticks: 5 },
    y: { tickFormat: format, ticks: 5, label: null, zero: true },
  }));
}

/** Round ratios within reach: three to seven of them. */
function ratioTicks(reach) {
  const sets = [[1.05, 0.95], [1.1, 0.9], [1.25, 0.8], [1.5, 0.67], [2, 0.5], [5, 0.2], [10, 0.1], [100, 0.01]];
  const within = sets.filter((set) => set.every((tick) => Math.abs(Math.log(tick)) <= reach)).slice(-3);
  return [1, ...within.flat()];
}

/** Ratios of candidate to base with their intervals, a row per lane. */
export function ratios(rows, width) {
  const data = rows.filter((row) => row.ratio != null).map((row) => ({ ...row, low: row.interval?.[0] ?? row.ratio, high: row.interval?.[1] ?? row.ratio }));
  const reach = Math.max(0.1, ...data.flatMap((row) => [row.low, row.high].map((value) => Math.abs(Math.log(value))))) * 1.05;
  const marginLeft = left(width, data.map((row) => row.lane));
  const filled = (wanted) => data.filter((row) => hollow(verdicts[row.verdict].symbol) !== wanted);
  const common = { y: "lane", x: "ratio", r: 4.5, symbol: (row) => verdicts[row.verdict].symbol };
  const colour = (row) => verdicts[row.verdict].colour;
  return Plot.plot({
    ...base(width),
    height: data.length * 24 + 40,
    marginLeft,
    marginRight: 96,
    marginTop: 6,
    marginBottom: 30,
    x: { type: "log", domain: [Math.exp(-reach), Math.exp(reach)], tickFormat: (value) => `${value}x`, ticks: ratioTicks(reach), label: null },
    y: { domain: data.map((row) => row.lane), label: null, tickSize: 0 },
    marks: [
      Plot.ruleX([1], { stroke: "var(--ink)" }),
      Plot.ruleY(data, { y: "lane", x1: "low", x2: "high", stroke: colour, strokeWidth: 2 }),
      Plot.dot(filled(true), { ...common, fill: colour, stroke: "var(--paper)" }),
      Plot.dot(filled(false), { ...common, stroke: colour, strokeWidth: 1.8 }),
      Plot.text(data, { y: "lane", text: (row) => row.verdict.replaceAll("_", " "), frameAnchor: "right", dx: 92, textAnchor: "end", fill: colour }),
    ],
  });
}

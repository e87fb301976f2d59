// How peers and verdicts look. Shape and label carry the meaning; colour only repeats it.

const peers = {
  flatwater: { symbol: "circle", colour: "var(--ours)", dash: null, ours: true },
  raw: { symbol: "square", colour: "var(--ink)", dash: null },
  "raw-held": { symbol: "square2", colour: "var(--ink)", dash: "2 3" },
  "raw-streamed": { symbol: "diamond2", colour: "var(--ink)", dash: "6 3" },
  mutex: { symbol: "triangle", colour: "var(--c1)", dash: "6 3" },
  "tokio-rusqlite": { symbol: "diamond", colour: "var(--c2)", dash: "1 3" },
  sqlx: { symbol: "star", colour: "var(--c3)", dash: "8 3 2 3" },
  "busy-turnstile": { symbol: "circle", colour: "var(--ours)", dash: null, ours: true },
  "busy-handler": { symbol: "diamond2", colour: "var(--ours)", dash: "6 3" },
  "busy-default": { symbol: "square", colour: "var(--ink)", dash: null },
  "busy-backoff": { symbol: "triangle", colour: "var(--c1)", dash: "6 3" },
  "busy-constant-1ms": { symbol: "diamond", colour: "var(--c2)", dash: "1 3" },
  "busy-constant-100us": { symbol: "star", colour: "var(--c3)", dash: "8 3 2 3" },
  "busy-ring": { symbol: "square2", colour: "var(--ink)", dash: "2 3" },
  base: { symbol: "square", colour: "var(--ink)", dash: null },
  candidate: { symbol: "circle", colour: "var(--ours)", dash: null, ours: true },
};
const others = ["triangle2", "cross", "plus", "times", "asterisk", "wye"];
const given = new Map();

/** Symbol, colour and dash of a peer. A peer without a look of its own gets the next free shape. */
export function look(peer) {
  if (peers[peer]) return peers[peer];
  if (!given.has(peer)) {
    const place = given.size;
    given.set(peer, { symbol: others[place % others.length], colour: "var(--muted)", dash: `${2 + 2 * place} 3` });
  }
  return given.get(peer);
}

/** Symbols that are drawn by a line and not by an area. */
export function hollow(symbol) {
  return ["square2", "diamond2", "triangle2", "plus", "times", "asterisk"].includes(symbol);
}

export const verdicts = {
  accepted: { symbol: "triangle", colour: "var(--good)" },
  rejected: { symbol: "times", colour: "var(--bad)" },
  inconclusive: { symbol: "diamond2", colour: "var(--muted)" },
  no_effect: { symbol: "circle", colour: "var(--muted)" },
  no_verdict: { symbol: "plus", colour: "var(--muted)" },
};

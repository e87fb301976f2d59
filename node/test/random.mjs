// Random programs: what makes one of a seed.

/** Random numbers of a seed (mulberry32). */
export function randomOf(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count) => Math.floor(next() * count);
  return {
    below,
    pick: (all) => all[below(all.length)],
    list: (most, make) => Array.from({ length: below(most) }, make),
  };
}

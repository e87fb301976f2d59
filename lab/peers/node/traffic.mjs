// Deterministic traffic: the draws of kit/src/traffic.rs, number by number.
//
// Owns: xoshiro256++ seeded through splitmix64, an unbiased number below a bound and a skewed choice, as the `rand`
// crate makes them. Leaves out: what is done with a draw.

const SEED = 0x000f_1a70_a7e2n;
const u64 = (value) => BigInt.asUintN(64, value);
const rotate = (value, by) => u64(value << by) | (value >> (64n - by));

/** A source of draws. */
export class Traffic {
  #state = [];

  constructor() {
    let seed = SEED;
    for (let word = 0; word < 4; word++) {
      seed = u64(seed + 0x9e37_79b9_7f4a_7c15n);
      let mixed = u64((seed ^ (seed >> 30n)) * 0xbf58_476d_1ce4_e5b9n);
      mixed = u64((mixed ^ (mixed >> 27n)) * 0x94d0_49bb_1331_11ebn);
      this.#state.push(mixed ^ (mixed >> 31n));
    }
  }

  #bits() {
    let [a, b, c, d] = this.#state;
    const answer = u64(rotate(u64(a + d), 23n) + a);
    c ^= a;
    d ^= b;
    this.#state = [a ^ d, b ^ c, c ^ u64(b << 17n), rotate(d, 45n)];
    return answer;
  }

  /** A number from 0 to below `bound`. */
  below(bound) {
    const wide = BigInt(bound);
    const product = this.#bits() * wide;
    let answer = product >> 64n;
    const low = u64(product);
    if (low > u64(-wide) && (low + ((this.#bits() * wide) >> 64n)) >> 64n) answer += 1n;
    return Number(answer);
  }

  /** A place of `zipf`'s. */
  place(zipf) {
    const chosen = (Number(this.#bits() >> 12n) / 2 ** 52) * zipf.at(-1);
    const place = zipf.findIndex((sum) => sum > chosen);
    return place === -1 ? zipf.length - 1 : place;
  }
}

/** Sums of the weights of places from 0: the second is half as likely as the first, and so on. */
export function zipf(places) {
  let sum = 0;
  return Array.from({ length: places }, (_, at) => (sum += 1 / (at + 1)));
}

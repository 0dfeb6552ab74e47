// Random numbers that are the same each time: mulberry32, and normal ones by Box and Muller.
export class Random {
  private spare: number | undefined;

  constructor(private seed: number) {}

  /** Between 0 and 1. */
  uniform(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let t = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  normal(): number {
    if (this.spare !== undefined) {
      const value = this.spare;
      this.spare = undefined;
      return value;
    }
    const r = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.spare = r * Math.sin(angle);
    return r * Math.cos(angle);
  }

  /** The numbers 0 to n - 1 in a random order. */
  order(n: number): number[] {
    const out = Array.from({ length: n }, (_, i) => i);
    for (let i = n - 1; i > 0; --i) {
      const j = Math.floor(this.uniform() * (i + 1));
      [out[i], out[j]] = [out[j]!, out[i]!];
    }
    return out;
  }
}

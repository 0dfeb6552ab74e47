// Data to begin with, and settings that teach by breaking something.
import { FLOWERS } from "../catalogue.ts";
import { Random } from "../numeric/random.ts";
import { type Point, snapped, type State } from "./state.ts";

export interface Preset {
  readonly title: string;
  readonly state: () => Partial<State>;
}

type Draw = (random: Random, i: number) => readonly [number, number, number];

function drawn(n: number, seed: number, draw: Draw): Point[] {
  const random = new Random(seed);
  return Array.from({ length: n }, (_, i) => snapped(...draw(random, i)));
}

const rings: Draw = (r, i) => {
  const [radius, angle] = [(i % 2 ? 2.1 : 0.75) + 0.22 * r.normal(), 2 * Math.PI * r.uniform()];
  return [radius * Math.cos(angle), radius * Math.sin(angle), i % 2];
};
const xor: Draw = (r, i) => {
  const [a, b] = [i & 1 ? 1 : -1, i & 2 ? 1 : -1];
  return [1.3 * a + 0.5 * r.normal(), 1.3 * b + 0.5 * r.normal(), a * b > 0 ? 0 : 1];
};
const moons: Draw = (r, i) => {
  const t = Math.PI * r.uniform();
  const [x, y] = i % 2 ? [1 - Math.cos(t), 0.5 - Math.sin(t)] : [Math.cos(t), Math.sin(t)];
  return [1.5 * (x - 0.5) + 0.18 * r.normal(), 1.9 * (y - 0.25) + 0.18 * r.normal(), i % 2];
};
const blobs: Draw = (r, i) => [(i % 2 ? 0.8 : -0.8) + 0.9 * r.normal(), (i % 2 ? 0.5 : -0.5) + 0.9 * r.normal(), i % 2];
const apart: Draw = (r, i) =>
  i === 0 ? [0.55, 0.1, 0] : [(i % 2 ? 1.5 : -1.5) + 0.42 * r.normal(), (i % 2 ? 0.7 : -0.7) + 0.5 * r.normal(), i % 2];
const three: Draw = (r, i) => {
  const angle = (2 * Math.PI * (i % 3)) / 3 + 0.5;
  return [1.4 * Math.cos(angle) + 0.6 * r.normal(), 1.4 * Math.sin(angle) + 0.6 * r.normal(), i % 3];
};
const sine: Draw = (r, i) => {
  const x = i % 2 ? 1.1 + 1.7 * r.uniform() : -2.8 + 2.5 * r.uniform();
  return [x, 1.5 * Math.sin(2 * x) + 0.22 * r.normal(), 0];
};

/** Petals of Fisher's iris, each measure less its mean and over its deviation. */
function flowers(): Point[] {
  const column = (j: number): number[] => {
    const all = FLOWERS.map((row) => row[j]!);
    const mean = all.reduce((a, b) => a + b) / all.length;
    const deviation = Math.sqrt(all.reduce((sum, v) => sum + (v - mean) ** 2, 0) / all.length);
    return all.map((v) => (v - mean) / deviation);
  };
  const [lengths, widths] = [column(0), column(1)];
  return FLOWERS.map((row, i) => snapped(lengths[i]!, widths[i]!, row[2]!));
}

const classes =
  (points: () => Point[], kernel: string, C: number): (() => Partial<State>) =>
  () => ({ task: "classes", loss: "hinge", points: points(), kernel, C });

export const PRESETS: Record<string, Preset> = {
  rings: { title: "Rings", state: classes(() => drawn(80, 1, rings), "RBF(scale=1)", 1) },
  xor: { title: "XOR", state: classes(() => drawn(80, 2, xor), "Polynomial(degree=2)", 1) },
  moons: { title: "Moons", state: classes(() => drawn(100, 3, moons), "RBF(scale=0.7)", 10) },
  blobs: { title: "Overlap", state: classes(() => drawn(100, 4, blobs), "Linear()", 1) },
  outlier: { title: "Outlier", state: classes(() => drawn(40, 5, apart), "Linear()", 100) },
  three: { title: "Three classes", state: classes(() => drawn(90, 6, three), "RBF(scale=1)", 1) },
  iris: { title: "Iris", state: classes(flowers, "RBF(scale=1)", 1) },
  sine: {
    title: "Sine with a gap",
    state: () => ({ task: "values", loss: "squared", points: drawn(50, 7, sine), kernel: "RBF(scale=0.6)", C: 10 }),
  },
};

export interface Lesson {
  readonly title: string;
  /** What to look at. */
  readonly says: string;
  readonly state: () => Partial<State>;
}

export const LESSONS: readonly Lesson[] = [
  {
    title: "A tiny scale",
    says: "Every point is alone: the Gram matrix is nearly the identity, each alpha is nearly the same, the training error is 0, and the held-out map is at its worst. The rule is that of the nearest neighbour.",
    state: () => ({ ...PRESETS["moons"]!.state(), kernel: "RBF(scale=0.06)", C: 10, view: "gram" }),
  },
  {
    title: "A huge C",
    says: "One misplaced point turns the whole line: at this price no slack is worth it, and the margin is as narrow as that point makes it. Take C down: the margin widens, and the point is given up.",
    state: () => ({ ...PRESETS["outlier"]!.state(), C: 1e5, view: "dual" }),
  },
  {
    title: "An indefinite kernel",
    says: "The sigmoid is no kernel: its matrix has negative eigenvalues here, with a witness. Without positivity the dual problem is not concave, and there is nothing to certify.",
    state: () => ({ ...PRESETS["rings"]!.state(), kernel: "Sigmoid(gamma=1, c=-1)", view: "gram" }),
  },
  {
    title: "An unscaled feature",
    says: "The second feature in other units, 30 times as large: distances no longer see the first one, and the boundary becomes stripes. Give each feature its scale: take the factors back to [1, 1].",
    state: () => ({ ...PRESETS["moons"]!.state(), kernel: "RBF(scale=2).transformed([1, 30])", C: 10, view: "map" }),
  },
  {
    title: "A gap in the data",
    says: "Between the points the norm decides: f returns towards its offset as fast as the scale allows. Widen the scale, or say what repeats: Periodic(period=3.14).",
    state: () => ({ ...PRESETS["sine"]!.state(), kernel: "RBF(scale=0.25)", view: "points" }),
  },
];

// A fit: f = sum a_i k(x_i, .) + b that minimises 1/2 |f|^2 + C sum loss(y_i, f(x_i)), with its certificate.
import type { Core, Held } from "./core.ts";
import { boxOf, type Loss } from "./losses.ts";

export interface Problem {
  readonly K: Held;
  readonly y: Float64Array;
  readonly loss: Loss;
  readonly C: number;
  /** The relative duality gap that SMO goes on to, and its steps at most. */
  readonly tol?: number;
  readonly steps?: number;
  /** Whether what takes longer than a frame may be left undone; the gap then says so. */
  readonly quick?: boolean;
}

export interface Fit {
  readonly alpha: Float64Array;
  readonly offset: number;
  /** f at the points. */
  readonly values: Float64Array;
  readonly primal: number;
  readonly dual: number;
  readonly gap: number;
  /** |f|^2 in the space of the kernel. */
  readonly square: number;
  readonly steps: number;
  readonly method: "SMO" | "Newton steps";
}

const RANK = 1e-14; // of the largest diagonal value: what a factor of the matrix leaves, about the rounding of its values
const NEWTON_STEPS = 200; // they end in a dozen or two where they end at all
const QUICK = { smo: 15_000, newton: 8, rank: 200 }; // of one thousand points: a few tens of milliseconds
const PRODUCTS = 1e10; // of Newton steps together: some seconds
const TOL = 1e-7; // relative gap: below what a picture or a table of six digits can show
const SMO_STEPS = 400_000; // a second or so of one thousand points

export function fit(core: Core, problem: Problem): Fit {
  return problem.loss.box ? bySmo(core, problem) : byNewton(core, problem);
}

function bySmo(core: Core, { K, y, loss, C, quick, tol = TOL, steps = quick ? QUICK.smo : SMO_STEPS }: Problem): Fit {
  const done = core.smo(K, boxOf(loss, y, C), tol, steps);
  return certified(K, y, loss, C, done.alpha, done.offset, done.steps, "SMO");
}

function byNewton(core: Core, { K, y, loss, C, quick, steps = NEWTON_STEPS }: Problem): Fit {
  const n = y.length;
  const { L, r } = core.factor(K, n, RANK, quick ? QUICK.rank : n);
  const most = quick ? QUICK.newton : Math.max(QUICK.newton, Math.floor(PRODUCTS / (n * r * r)));
  const done = core.newton(L, r, y, loss.smooth!, C, Math.min(steps, most));
  L.release();
  const alpha = done.f.map((f, i) => -C * loss.derivative(y[i]!, f));
  return certified(K, y, loss, C, alpha, done.offset, done.steps, "Newton steps");
}

/** The objectives of a primal and of a dual point, from the coefficients and the matrix alone: weak duality as a receipt. */
function certified(
  K: Held,
  y: Float64Array,
  loss: Loss,
  C: number,
  alpha: Float64Array,
  offset: number,
  steps: number,
  method: Fit["method"],
): Fit {
  const values = product(K.view, alpha);
  const square = alpha.reduce((sum, a, i) => sum + a * values[i]!, 0);
  let losses = 0;
  let conjugates = 0;
  for (let i = 0; i < y.length; ++i) {
    values[i]! += offset;
    losses += loss.value(y[i]!, values[i]!);
    conjugates += loss.conjugate(y[i]!, -alpha[i]! / C);
  }
  const primal = square / 2 + C * losses;
  const dual = -square / 2 - C * conjugates;
  const size = Math.max(Math.abs(primal), Math.abs(dual));
  return { alpha, offset, values, primal, dual, gap: size > 0 ? (primal - dual) / size : 0, square, steps, method };
}

/** K v for a symmetric matrix, skipping what is 0. */
export function product(K: Float64Array, v: Float64Array): Float64Array {
  const n = v.length;
  const out = new Float64Array(n);
  for (let i = 0; i < n; ++i) {
    const by = v[i]!;
    if (by === 0) continue;
    const row = K.subarray(i * n, (i + 1) * n);
    for (let j = 0; j < n; ++j) out[j]! += by * row[j]!;
  }
  return out;
}

/** The objectives on the way: those after 1, 2, 4, ... steps of SMO, or after each of Newton's. */
export function course(core: Core, problem: Problem): { steps: number; primal: number; dual: number }[] {
  const out = [];
  for (let steps = 1; steps <= SMO_STEPS; steps = problem.loss.box ? 2 * steps : steps + 1) {
    const at = fit(core, { ...problem, steps, tol: 1e-12 });
    out.push({ steps: at.steps, primal: at.primal, dual: at.dual });
    if (at.steps < steps || (at.gap >= 0 && at.gap < 1e-9)) break;
  }
  return out;
}

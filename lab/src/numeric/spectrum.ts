// Eigenvalues of a symmetric matrix, and a vector that shows a negative one.

/** All eigenvalues, descending: Householder's reduction, then implicit QL (after EISPACK's tred1 and tql1). */
export function eigenvalues(matrix: Float64Array, n: number): Float64Array {
  const A = matrix.slice();
  const d = new Float64Array(n);
  const e = new Float64Array(n + 1);
  for (let k = n - 1; k > 0; --k) {
    const row = A.subarray(k * n, k * n + k);
    const length = Math.hypot(...row);
    d[k] = A[k * n + k]!;
    if (length === 0) continue;
    const alpha = row[k - 1]! > 0 ? -length : length;
    e[k] = alpha;
    row[k - 1]! -= alpha;
    const square = row.reduce((sum, v) => sum + v * v, 0) / 2;
    const p = new Float64Array(k);
    for (let i = 0; i < k; ++i) {
      let sum = 0;
      for (let j = 0; j < k; ++j) sum += (j <= i ? A[i * n + j]! : A[j * n + i]!) * row[j]!;
      p[i] = sum / square;
    }
    const half = p.reduce((sum, v, i) => sum + v * row[i]!, 0) / (2 * square);
    for (let i = 0; i < k; ++i) p[i]! -= half * row[i]!;
    for (let i = 0; i < k; ++i) for (let j = 0; j <= i; ++j) A[i * n + j]! -= row[i]! * p[j]! + p[i]! * row[j]!;
  }
  d[0] = A[0]!;
  return tridiagonal(d, e.subarray(1), n).sort((a, b) => b - a);
}

/** Eigenvalues of the tridiagonal matrix with diagonal d and off-diagonal e. */
function tridiagonal(d: Float64Array, e: Float64Array, n: number): Float64Array {
  for (let l = 0; l < n; ++l)
    for (let round = 0; round < 60; ++round) {
      let m = l;
      for (; m < n - 1; ++m) if (Math.abs(e[m]!) <= Number.EPSILON * (Math.abs(d[m]!) + Math.abs(d[m + 1]!))) break;
      if (m === l) break;
      let g = (d[l + 1]! - d[l]!) / (2 * e[l]!);
      g = d[m]! - d[l]! + e[l]! / (g + Math.sign(g || 1) * Math.hypot(g, 1));
      let [s, c, p] = [1, 1, 0];
      for (let i = m - 1; i >= l; --i) {
        const [f, b] = [s * e[i]!, c * e[i]!];
        const r = Math.hypot(f, g);
        e[i + 1] = r;
        if (r === 0) {
          d[i + 1]! -= p;
          e[m] = 0;
          break;
        }
        [s, c] = [f / r, g / r];
        g = d[i + 1]! - p;
        const t = (d[i]! - g) * s + 2 * c * b;
        p = s * t;
        d[i + 1] = g + p;
        g = c * t - b;
        if (i === l) {
          d[l]! -= p;
          e[l] = g;
          e[m] = 0;
        }
      }
    }
  return d;
}

/** A vector a of length 1 with a'Ka < 0, by powers of top I - K; none where the powers find no such vector. */
export function witness(K: Float64Array, n: number, top: number): { a: Float64Array; value: number } | undefined {
  let a = Float64Array.from({ length: n }, (_, i) => Math.cos(i * i + 1));
  let value = 0;
  for (let round = 0; round < 400; ++round) {
    const next = new Float64Array(n);
    value = 0;
    for (let i = 0; i < n; ++i) {
      let sum = 0;
      for (let j = 0; j < n; ++j) sum += K[i * n + j]! * a[j]!;
      value += a[i]! * sum;
      next[i] = top * a[i]! - sum;
    }
    const length = Math.hypot(...next);
    if (round > 50 && value < 0 && round % 50 === 0) break;
    a = next.map((v) => v / length);
  }
  return value < 0 ? { a, value: rayleigh(K, a) } : undefined;
}

function rayleigh(K: Float64Array, a: Float64Array): number {
  const n = a.length;
  let sum = 0;
  for (let i = 0; i < n; ++i) for (let j = 0; j < n; ++j) sum += a[i]! * K[i * n + j]! * a[j]!;
  return sum;
}

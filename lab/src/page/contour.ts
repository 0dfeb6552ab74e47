// Level lines of values on a grid, by marching squares.

/** The line f = level on a grid of side + 1 nodes each way, in units of cells; `draw` gets each piece. */
export function contour(
  f: ArrayLike<number>,
  side: number,
  level: number,
  draw: (x0: number, y0: number, x1: number, y1: number) => void,
): void {
  const row = side + 1;
  for (let j = 0; j < side; ++j)
    for (let i = 0; i < side; ++i) {
      const at = j * row + i;
      const [a, b, c, d] = [f[at]! - level, f[at + 1]! - level, f[at + row + 1]! - level, f[at + row]! - level];
      const cuts: number[] = [];
      if (a < 0 !== b < 0) cuts.push(i + a / (a - b), j);
      if (b < 0 !== c < 0) cuts.push(i + 1, j + b / (b - c));
      if (d < 0 !== c < 0) cuts.push(i + d / (d - c), j + 1);
      if (a < 0 !== d < 0) cuts.push(i, j + a / (a - d));
      if (cuts.length === 8 && a + b + c + d < 0 !== a < 0) cuts.push(cuts.shift()!, cuts.shift()!); // a saddle: by the middle
      for (let k = 0; k + 3 < cuts.length; k += 4) draw(cuts[k]!, cuts[k + 1]!, cuts[k + 2]!, cuts[k + 3]!);
    }
}

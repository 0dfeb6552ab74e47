// Parameters that are read off data: "auto" and "median" (src/mercer/kernels/vectors/stationary.py).
import type { Points } from "../numeric/points.ts";
import { type Argument, entryOf, type Kernel, values, variantOf } from "./kernel.ts";

/** The kernel with numbers in the place of "auto" and "median". */
export function resolved(kernel: Kernel, points: Points): Kernel {
  const entry = entryOf(kernel);
  const given: Record<string, Argument> = { ...kernel.given };
  for (const [name, value] of Object.entries(given))
    if (typeof value === "string")
      given[name] = value === "median" ? median(points, kernel.name === "Laplacian") : read(entry.auto, points);
  const parts = Object.entries(kernel.parts).map(
    ([name, part]) => [name, resolved(part, seen(kernel, name, points))] as const,
  );
  return { ...kernel, given, parts: Object.fromEntries(parts) };
}

function seen(kernel: Kernel, part: string, points: Points): Points {
  if (kernel.by === undefined) return points;
  const leaf = variantOf(kernel, points.width)
    .program(values(kernel))
    .stats.find((stat) => stat.kind === part)!;
  return leaf.path.reduce((image, map) => image.through({ ...map, by: kernel.by! }), points);
}

function read(rule: string, points: Points): number {
  const variance = spread(points);
  const d = points.width;
  if (rule === "width times deviation") return d * (variance > 0 ? Math.sqrt(variance) : 1);
  if (rule === "inverse spread") return variance > 0 ? 1 / (d * variance) : 1;
  return variance > 0 ? Math.sqrt((d * variance) / 2) : Math.SQRT1_2;
}

/** The variance of all coordinates together. */
function spread({ data }: Points): number {
  const mean = data.reduce((a, b) => a + b, 0) / data.length;
  return data.reduce((sum, v) => sum + (v - mean) ** 2, 0) / data.length;
}

/** The median distance between two points, or the sum of the differences of their coordinates. */
function median(points: Points, city: boolean): number {
  const { n, width, data } = points;
  const out: number[] = [];
  for (let i = 0; i < n; ++i)
    for (let j = i + 1; j < n; ++j) {
      let sum = 0;
      for (let k = 0; k < width; ++k) {
        const apart = data[i * width + k]! - data[j * width + k]!;
        sum += city ? Math.abs(apart) : apart * apart;
      }
      out.push(city ? sum : Math.sqrt(sum));
    }
  out.sort((a, b) => a - b);
  const half = out.length >> 1;
  const middle = out.length === 0 ? 0 : out.length % 2 ? out[half]! : (out[half - 1]! + out[half]!) / 2;
  return middle > 0 ? middle : 1;
}

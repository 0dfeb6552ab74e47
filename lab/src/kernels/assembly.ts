// The program of a kernel with parts: the programs of the catalogue put into one another, as the core runs it.
import { OPS, STATS } from "../catalogue.ts";
import { widthAfter } from "../numeric/points.ts";
import type { PointMap } from "./entry.ts";
import { type Kernel, values, variantOf } from "./kernel.ts";

interface Step {
  readonly op: number;
  readonly a: number;
  readonly b: number;
  readonly constants: readonly number[];
}

export interface Operand {
  readonly kind: number;
  readonly path: readonly PointMap[];
}

/** A number for each point: `of` some points through a path, for the diagonal of a kernel where it says so. */
export interface PointValue {
  readonly of: string;
  readonly path: readonly PointMap[];
  readonly kernel: Kernel | undefined;
}

export interface Assembled {
  readonly code: readonly (readonly number[])[];
  readonly constants: readonly (readonly number[])[];
  readonly registers: number;
  readonly result: number;
  readonly operands: readonly Operand[];
  readonly values: readonly PointValue[];
}

const op = (name: string): number => OPS.indexOf(name);
const [STAT, ROW, COL] = [op("stat"), op("row"), op("col")];
const OF_TWO = new Set(["add", "sub", "mul", "div", "min", "max", "atan2", "exp_add", "powi_add", "damp_add"].map(op));

/** The whole program of a kernel on points of some width. */
export function assemble(kernel: Kernel, width: number): Assembled {
  const assembly = new Assembly();
  const result = assembly.add(kernel, [], width);
  return assembly.allocated(result);
}

class Assembly {
  private readonly steps: Step[] = [];
  private readonly known = new Map<string, number>(); // equal steps are one
  private readonly operands: Operand[] = [];
  private readonly values: PointValue[] = [];

  /** Append the program of a kernel that sees points through a path; return its last step. */
  add(kernel: Kernel, path: readonly PointMap[], width: number): number {
    const made = variantOf(kernel, width).program(values(kernel));
    const through = (maps: readonly PointMap[]): PointMap[] => [
      ...path,
      ...maps.map((m) => (kernel.by === undefined ? m : { ...m, by: kernel.by })),
    ];
    const place: number[] = [];
    made.code.forEach(([code, dst, a, b], i) => {
      const constants = made.constants[i]!;
      if (code === STAT) {
        const { kind, path: maps, scale } = made.stats[a!]!;
        const part = kernel.parts[kind];
        const way = through(maps);
        place[dst!] = part
          ? this.add(
              part,
              way,
              maps.reduce((w, m) => widthAfter(w, { ...m, by: kernel.by ?? m.by! }), width),
            )
          : this.stat(kind, way, scale);
      } else if (code === ROW || code === COL) {
        const { of, path: maps } = made.values[a!]!;
        place[dst!] = this.step(
          code,
          this.listed(this.values, { of, path: through(maps), kernel: kernel.parts["base"] }),
          -1,
          constants,
        );
      } else {
        place[dst!] = this.step(code!, place[a!]!, OF_TWO.has(code!) ? place[b!]! : -1, constants);
      }
    });
    return place[made.result]!;
  }

  private stat(kind: string, path: readonly PointMap[], scale: number): number {
    const whole = scale === 1 ? path : [...path, { map: "scaled", by: scale }];
    return this.step(STAT, this.listed(this.operands, { kind: STATS.indexOf(kind), path: whole }), -1, [1, 0, 0]);
  }

  private listed<T>(list: T[], item: T): number {
    const key = JSON.stringify(item);
    const at = list.findIndex((other) => JSON.stringify(other) === key);
    return at >= 0 ? at : list.push(item) - 1;
  }

  private step(code: number, a: number, b: number, constants: readonly number[]): number {
    const key = `${code} ${a} ${b} ${constants.join(" ")}`;
    let at = this.known.get(key);
    if (at === undefined) this.known.set(key, (at = this.steps.push({ op: code, a, b, constants }) - 1));
    return at;
  }

  /** The steps with registers, which are free again after their last use. */
  allocated(result: number): Assembled {
    const last = this.steps.map(() => -1);
    const reads = ({ op: code, a, b }: Step): number[] =>
      code === STAT || code === ROW || code === COL ? [] : b >= 0 ? [a, b] : [a];
    this.steps.forEach((step, i) => reads(step).forEach((j) => (last[j] = i)));
    last[result] = this.steps.length;
    const place: number[] = [];
    const free: number[] = [];
    let registers = 0;
    const code = this.steps.map((step, i) => {
      const sources = reads(step);
      for (const j of new Set(sources)) if (last[j] === i) free.push(place[j]!);
      place[i] = free.pop() ?? registers++;
      return [step.op, place[i]!, sources.length > 0 ? place[step.a]! : step.a, step.b >= 0 ? place[step.b]! : 0];
    });
    return {
      code,
      constants: this.steps.map((s) => s.constants),
      registers,
      result: place[result]!,
      operands: this.operands,
      values: this.values,
    };
  }
}

// A kernel: a name of the catalogue with its parameters and its parts; its text, and its proof.
import { KERNELS, RULES } from "../catalogue.ts";
import type { Entry, PointMap, Status, Values, Variant } from "./entry.ts";

export type Argument = number | string | readonly number[];

export interface Kernel {
  readonly name: string;
  readonly given: Readonly<Record<string, Argument>>;
  readonly parts: Readonly<Record<string, Kernel>>;
  /** Columns or matrix of the rules that map points. */
  readonly by?: NonNullable<PointMap["by"]>;
}

export interface Proof {
  readonly claim: string;
  readonly rule: string;
  readonly reason: string;
  readonly status: Status;
  readonly parts: readonly Proof[];
}

export function entryOf(kernel: Kernel): Entry {
  const entry = KERNELS[kernel.name] ?? RULES[kernel.name];
  if (entry === undefined) throw new Error(`no kernel is called ${kernel.name}`);
  return entry;
}

/** The variant of the formula for these parameters and so many features. */
export function variantOf(kernel: Kernel, width: number): Variant {
  const asked: Values = { ...values(kernel), width };
  const found = entryOf(kernel).variants.find(({ when }) => Object.entries(when).every(([k, v]) => asked[k] === v));
  if (found === undefined) throw new Error(`${text(kernel)} has no formula for ${width} features.`);
  return found;
}

/** Parameters as the programs read them; they are numbers, or lists where a program hands them to a map. */
export function values(kernel: Kernel): Values {
  return kernel.given as Values;
}

/** Replace the kernel at a place, given by the names of the parts on the way to it. */
export function replaced(kernel: Kernel, way: readonly string[], change: (k: Kernel) => Kernel): Kernel {
  const [first, ...rest] = way;
  if (first === undefined) return change(kernel);
  return { ...kernel, parts: { ...kernel.parts, [first]: replaced(kernel.parts[first]!, rest, change) } };
}

/** All kernels of a tree, each with its place. */
export function* walk(kernel: Kernel, way: readonly string[] = []): Generator<[Kernel, readonly string[]]> {
  yield [kernel, way];
  for (const [name, part] of Object.entries(kernel.parts)) yield* walk(part, [...way, name]);
}

// -- text -------------------------------------------------------------------------------------------------

const LOOSE = new Set(["Sum", "Product", "Scaled", "Power"]);

/** The kernel as one writes it in Python. */
export function text(kernel: Kernel): string {
  const { left, right, base } = kernel.parts;
  const inside = (k: Kernel, ...loose: string[]): string => (loose.includes(k.name) ? `(${text(k)})` : text(k));
  switch (kernel.name) {
    case "Sum":
      return `${text(left!)} + ${inside(right!, "Sum")}`;
    case "Product":
      return `${inside(left!, "Sum")} * ${inside(right!, "Sum", "Product", "Scaled")}`;
    case "Scaled":
      return `${number(kernel.given["factor"]!)} * ${inside(base!, "Sum", "Product", "Scaled")}`;
    case "Power":
      return `${inside(base!, ...LOOSE)} ** ${number(kernel.given["power"]!)}`;
    case "Exponential":
      return `${inside(base!, ...LOOSE)}.exp()`;
    case "Geometric":
      return `${inside(base!, ...LOOSE)}.geometric()`;
    case "Normalized":
      return `${inside(base!, ...LOOSE)}.normalized()`;
    case "On":
      return `${inside(base!, ...LOOSE)}.on(${JSON.stringify(kernel.by)})`;
    case "Transformed":
      return `${inside(base!, ...LOOSE)}.transformed(${JSON.stringify(kernel.by).replaceAll(",", ", ")})`;
  }
  const shown = entryOf(kernel)
    .parameters.filter((p) => kernel.given[p.name] !== p.default)
    .map((p) => `${p.name}=${number(kernel.given[p.name]!)}`);
  return `${kernel.name}(${shown.join(", ")})`;
}

function number(value: Argument): string {
  if (typeof value === "string") return `"${value}"`;
  return typeof value === "number" ? String(value) : `[${value.join(", ")}]`;
}

// -- proof ------------------------------------------------------------------------------------------------

/** Why the kernel is positive semidefinite, down to axioms. */
export function proof(kernel: Kernel, width = 2): Proof {
  const parts = Object.values(kernel.parts).map((part) => proof(part, width));
  const [rule, reason, own] = variantOf(kernel, width).because(values(kernel)) as [string, string, Status];
  const whole = parts.every((part) => part.status === "proven");
  return { claim: text(kernel), rule, reason, parts, status: own !== "proven" ? own : whole ? "proven" : "unproven" };
}

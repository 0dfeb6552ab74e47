// What the catalogue says of a kernel or a rule; written by lab/export.py.

/** Values of the parameters; one number for each feature stands, as a list, where a number may. */
export type Values = Readonly<Record<string, number>>;

export type Status = "proven" | "unproven" | "refuted";

export interface Parameter {
  readonly name: string;
  readonly default: number | string | null;
  readonly whole: boolean;
  readonly each: boolean;
  readonly choices: readonly number[];
  /** The sentence for values below `low`, or at it where it is open; and `beyond` for those above `high`. */
  readonly refused?: string;
  readonly low?: number;
  readonly open?: number;
  readonly high?: number;
  readonly beyond?: string;
}

/** A map that points go through; what it takes is `by`. */
export interface PointMap {
  readonly map: string;
  readonly by?: number | readonly number[] | readonly (readonly number[])[];
}

/** Instructions op, dst, a, b with constants c, e, p: register dst = op(c * register a + e, register b or p). */
export interface Program {
  readonly code: readonly (readonly number[])[];
  readonly constants: readonly (readonly number[])[];
  readonly result: number;
  readonly stats: readonly { readonly kind: string; readonly path: readonly PointMap[]; readonly scale: number }[];
  readonly values: readonly { readonly of: string; readonly path: readonly PointMap[] }[];
}

export interface Variant {
  readonly when: Readonly<Record<string, number>>;
  readonly because: (p: Values) => readonly [string, string, string] | readonly string[];
  readonly program: (p: Values) => Program;
}

export interface Entry {
  readonly formula: string;
  readonly summary: string;
  readonly auto: string;
  readonly parameters: readonly Parameter[];
  readonly variants: readonly Variant[];
}

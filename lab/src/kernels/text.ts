// Kernels from text: the grammar of the command line (src/mercer/kernels/expression.py), read and never run.
import { KERNELS, REFUSALS, RULES } from "../catalogue.ts";
import type { Parameter } from "./entry.ts";
import { type Argument, type Kernel, text as written } from "./kernel.ts";

/** A text that is no kernel: what is wrong, and where. */
export class KernelError extends Error {
  constructor(
    sentence: string,
    readonly start: number,
    readonly end: number,
  ) {
    super(sentence);
  }
}

interface Token {
  readonly kind: "number" | "name" | "string" | "sign" | "end";
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

type Given = readonly Item[];
type Item = Kernel | number | string | null | Given;

const WORD =
  /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|("[^"]*"|'[^']*')|(\*\*|[-+*/().,=[\]^]))/y;
const KINDS = ["number", "name", "string", "sign"] as const;
const METHODS: Record<string, string> = {
  exp: "Exponential",
  geometric: "Geometric",
  normalized: "Normalized",
  on: "On",
  transformed: "Transformed",
};
const ELSEWHERE: Record<string, string> = {
  gaussian: "RBF",
  squaredexponential: "RBF",
  poly: "Polynomial",
  chi2: "ChiSquared",
};
const DEPTH = 50; // nested brackets, signs and powers
const LENGTH = 2000; // characters of a text

export function parse(text: string): Kernel {
  return new Parser(text).kernel();
}

function isKernel(item: Item): item is Kernel {
  return typeof item === "object" && item !== null && "parts" in item;
}

function tokens(text: string): Token[] {
  if (text.length > LENGTH)
    throw new KernelError(`the text has ${text.length} characters; at most ${LENGTH} are read.`, LENGTH, LENGTH);
  const out: Token[] = [];
  const stop = text.trimEnd().length;
  WORD.lastIndex = 0;
  while (WORD.lastIndex < stop) {
    const at = WORD.lastIndex;
    const match = WORD.exec(text);
    if (match === null) {
      const start = at + text.slice(at).search(/\S/);
      throw new KernelError(`'${text[start]}' has no meaning here.`, start, start + 1);
    }
    const group = match.slice(1).findIndex((word) => word !== undefined);
    const word = match[group + 1]!;
    out.push({ kind: KINDS[group]!, text: word, start: WORD.lastIndex - word.length, end: WORD.lastIndex });
  }
  return [...out, { kind: "end", text: "", start: stop, end: stop }];
}

/** Recursive descent; every rule returns a value and leaves `at` behind it. */
class Parser {
  private readonly tokens: Token[];
  private at = 0;
  private depth = 0;

  constructor(text: string) {
    this.tokens = tokens(text);
  }

  kernel(): Kernel {
    const first = this.peek();
    if (first.kind === "end") this.fail("a kernel is expected, such as RBF(2) + Linear(); the text is empty.", first);
    const value = this.sum();
    if (this.peek().kind !== "end") {
      const hint = this.peek().text === "^" ? "; powers are written **" : "";
      this.fail(`an operator (+ * **) or the end is expected here${hint}.`, this.peek());
    }
    if (isKernel(value)) return value;
    return this.fail(
      `this is ${shown(value)}, no kernel${typeof value === "number" ? "; Constant(c) is the constant kernel" : ""}.`,
      first,
    );
  }

  // -- tokens ---------------------------------------------------------------------------------------------

  private peek(): Token {
    return this.tokens[this.at]!;
  }

  private take(): Token {
    const token = this.peek();
    if (token.kind !== "end") this.at += 1;
    return token;
  }

  private accept(...signs: string[]): Token | undefined {
    const token = this.peek();
    return token.kind === "sign" && signs.includes(token.text) ? this.take() : undefined;
  }

  private expect(sign: string, opened: Token): void {
    if (!this.accept(sign))
      this.fail(`'${sign}' is expected here, to close the '${opened.text}' at ${opened.start + 1}.`, this.peek());
  }

  private fail(sentence: string, token: Token): never {
    throw new KernelError(sentence, token.start, Math.max(token.end, token.start + 1));
  }

  // -- expressions ----------------------------------------------------------------------------------------

  private sum(): Item {
    let value = this.product();
    for (let sign = this.accept("+", "-"); sign; sign = this.accept("+", "-"))
      value = this.combine(sign, value, this.product());
    return value;
  }

  private product(): Item {
    let value = this.signed();
    for (let sign = this.accept("*", "/"); sign; sign = this.accept("*", "/"))
      value = this.combine(sign, value, this.signed());
    return value;
  }

  private signed(): Item {
    if (++this.depth > DEPTH)
      this.fail(`brackets, signs and powers are nested more than ${DEPTH} deep here; write it flatter.`, this.peek());
    const sign = this.accept("-", "+");
    let value = sign === undefined ? this.power() : this.signed();
    if (sign !== undefined) {
      if (isKernel(value) && sign.text === "-") this.fail(REFUSALS.negative, sign);
      if (typeof value === "number") value = sign.text === "-" ? -value : value;
      else if (!isKernel(value)) this.fail(`a sign belongs in front of a number, not of ${shown(value)}.`, sign);
    }
    this.depth -= 1;
    return value;
  }

  private power(): Item {
    const value = this.postfix();
    const sign = this.accept("**");
    return sign ? this.combine(sign, value, this.signed()) : value;
  }

  private postfix(): Item {
    const start = this.peek();
    let value = this.primary();
    while (this.accept(".")) {
      const name = this.take();
      const rule = METHODS[name.text];
      if (name.kind !== "name" || rule === undefined)
        this.fail(
          `one of ${Object.keys(METHODS)
            .map((m) => `.${m}()`)
            .join(", ")} is expected after the dot.`,
          name,
        );
      if (!isKernel(value)) this.fail(`.${name.text}() belongs to a kernel; this is ${shown(value)}.`, start);
      const { given } = this.arguments(name);
      const takes = rule === "On" || rule === "Transformed";
      if (given.length !== Number(takes))
        this.fail(`.${name.text}() takes ${takes ? "one list of numbers" : "nothing"}.`, name);
      value = takes ? this.mapped(rule, value, given[0]!, name) : { name: rule, given: {}, parts: { base: value } };
    }
    return value;
  }

  private mapped(rule: string, base: Kernel, by: Item, name: Token): Kernel {
    const list = typeof by === "number" ? [by] : by;
    const flat = Array.isArray(list) && list.length > 0 && list.every((v) => typeof v === "number");
    const square =
      rule === "Transformed" &&
      Array.isArray(list) &&
      list.length > 0 &&
      list.every((row) => Array.isArray(row) && row.length === 2 && row.every((v) => typeof v === "number"));
    if (rule === "On" ? !(flat && list.every((v) => v === 0 || v === 1)) : !(square || (flat && list.length <= 2)))
      this.fail(
        rule === "On"
          ? ".on takes columns of the page's points: 0, 1 or both, as in .on([0])."
          : ".transformed takes one factor for each feature or a matrix, as in .transformed([0.5, 2.0]).",
        name,
      );
    return { name: rule, given: {}, parts: { base }, by: list as readonly number[] };
  }

  private primary(): Item {
    const token = this.take();
    if (token.kind === "number") {
      const value = Number(token.text);
      return Number.isFinite(value) ? value : this.fail(`${token.text} is outside the range of float64.`, token);
    }
    if (token.kind === "string") return token.text.slice(1, -1);
    if (token.kind === "name") return token.text === "None" ? null : this.named(token);
    if (token.text === "[") return this.items("]", token);
    if (token.text === "(") {
      const inside = this.items(")", token);
      return inside.length === 1
        ? inside[0]!
        : this.fail("a kernel or a number is expected between these brackets.", token);
    }
    return this.fail(
      `a kernel or a number is expected where ${token.kind === "end" ? "the text ends" : `'${token.text}' stands`}.`,
      token,
    );
  }

  private items(close: string, opened: Token): Item[] {
    const out: Item[] = [];
    while (!this.accept(close)) {
      out.push(this.sum());
      if (!this.accept(",")) {
        this.expect(close, opened);
        break;
      }
    }
    return out;
  }

  // -- names ----------------------------------------------------------------------------------------------

  private named(token: Token): Kernel {
    const entry = KERNELS[token.text];
    if (entry === undefined) {
      const meant = ELSEWHERE[token.text.toLowerCase().replaceAll("_", "")] ?? closest(token.text);
      return this.fail(
        `no kernel of the page is called '${token.text}'${meant ? `; did you mean ${meant}?` : "."}`,
        token,
      );
    }
    if (this.peek().text === "." && ["from_gamma", "from_sigma2"].includes(this.tokens[this.at + 1]!.text))
      return this.maker(token);
    const { given, named, where } =
      this.peek().text === "(" ? this.arguments(token) : { given: [], named: {}, where: {} };
    const known = entry.parameters.map((p) => p.name);
    if (given.length > known.length)
      this.fail(`${token.text} was given ${given.length} parameters; it has ${known.join(", ") || "none"}.`, token);
    for (const key of Object.keys(named)) {
      if (!known.includes(key))
        this.fail(`'${key}' is no parameter of ${token.text}, which has ${known.join(", ") || "none"}.`, where[key]!);
      if (known.indexOf(key) < given.length) this.fail(`'${key}' is given twice.`, where[key]!);
    }
    const made: Record<string, Argument> = {};
    entry.parameters.forEach((p, i) => {
      const value = i < given.length ? given[i]! : (named[p.name] ?? p.default!);
      made[p.name] = this.checked(token, p, value);
    });
    return { name: token.text, given: made, parts: {} };
  }

  private maker(token: Token): Kernel {
    this.take();
    const by = this.take().text;
    const { given } = this.arguments(token);
    const [value] = given;
    if (token.text !== "RBF") this.fail(`${token.text} has no ${by}.`, token);
    if (given.length !== 1 || typeof value !== "number" || !(value > 0))
      this.fail(`${by} takes one positive number, as in RBF.${by}(0.5).`, token);
    return { name: "RBF", given: { scale: Math.sqrt(by === "from_gamma" ? 0.5 / value : value / 2) }, parts: {} };
  }

  private checked(token: Token, p: Parameter, value: Item): Argument {
    const refuse = (): never =>
      this.fail(
        (p.refused ?? `${p.name} of ${token.text} must be a number; it is {value}.`).replace(
          "{value}",
          token.text === "Scaled" && Number.isInteger(value) ? `${shown(value)}.0` : shown(value),
        ),
        token,
      );
    if (typeof value === "string") {
      const rules = p.default === "auto" || p.each ? ["auto", "median"] : p.name === "c2" ? ["auto"] : [];
      return rules.includes(value) && (value === "auto" || p.each) ? value : refuse();
    }
    if (Array.isArray(value))
      return p.each && value.length > 0 && value.length <= 2 && value.every((v) => typeof v === "number" && v > 0)
        ? (value as number[])
        : refuse();
    if (typeof value !== "number") return refuse();
    if (p.choices.length > 0 && !p.choices.includes(value))
      this.fail(
        value > 0 && p.name === "nu"
          ? `nu of Matern is 0.5, 1.5 or 2.5 on this page, where the kernel has a closed form; the library takes any nu > 0.`
          : p.refused!.replace("{value}", shown(value)),
        token,
      );
    if (p.whole && !Number.isInteger(value)) refuse();
    if (p.low !== undefined && (value < p.low || (p.open !== undefined && value === p.open))) refuse();
    if (p.high !== undefined && value > p.high) this.fail(p.beyond!.replace("{value}", shown(value)), token);
    return value;
  }

  private arguments(name: Token): { given: Item[]; named: Record<string, Item>; where: Record<string, Token> } {
    const opened = this.peek();
    if (!this.accept("(")) this.fail(`'(' is expected after ${name.text}.`, opened);
    const given: Item[] = [];
    const named: Record<string, Item> = {};
    const where: Record<string, Token> = {};
    while (!this.accept(")")) {
      const token = this.peek();
      if (token.kind === "name" && this.tokens[this.at + 1]!.text === "=") {
        this.at += 2;
        if (token.text in named) this.fail(`'${token.text}' is given twice.`, token);
        named[token.text] = this.sum();
        where[token.text] = token;
      } else if (Object.keys(named).length > 0) {
        this.fail("a parameter without a name cannot follow one with a name.", token);
      } else given.push(this.sum());
      if (!this.accept(",")) {
        this.expect(")", opened);
        break;
      }
    }
    return { given, named, where };
  }

  // -- values ---------------------------------------------------------------------------------------------

  private combine(sign: Token, left: Item, right: Item): Item {
    for (const value of [left, right])
      if (!isKernel(value) && typeof value !== "number")
        this.fail(`'${sign.text}' joins kernels and numbers; one side is ${shown(value)}.`, sign);
    if (typeof left === "number" && typeof right === "number") {
      const made = { "+": left + right, "-": left - right, "*": left * right, "/": left / right, "**": left ** right }[
        sign.text
      ]!;
      return Number.isFinite(made) ? made : this.fail(`${left} ${sign.text} ${right} is no finite number.`, sign);
    }
    const one = (item: Item): Kernel =>
      isKernel(item) ? item : this.ruled("Constant", { value: item as number }, {}, sign);
    switch (sign.text) {
      case "+":
        return { name: "Sum", given: {}, parts: { left: one(left), right: one(right) } };
      case "*":
        if (isKernel(left) && isKernel(right)) return { name: "Product", given: {}, parts: { left, right } };
        return this.ruled(
          "Scaled",
          { factor: (isKernel(left) ? right : left) as number },
          { base: (isKernel(left) ? left : right) as Kernel },
          sign,
        );
      case "/":
        if (!isKernel(left)) return this.fail(REFUSALS.reciprocal, sign);
        if (isKernel(right) || !((right as number) > 0)) return this.fail(REFUSALS.quotient, sign);
        return this.ruled("Scaled", { factor: 1 / (right as number) }, { base: left }, sign);
      case "**":
        if (isKernel(right))
          return this.fail("a kernel cannot be a power; k.exp() is the exponential of a kernel.", sign);
        return this.ruled("Power", { power: right as number }, { base: left as Kernel }, sign);
    }
    return this.fail(REFUSALS.difference, sign);
  }

  private ruled(name: string, given: Record<string, number>, parts: Record<string, Kernel>, sign: Token): Kernel {
    for (const p of (KERNELS[name] ?? RULES[name])!.parameters)
      this.checked({ ...sign, text: name }, p, given[p.name]!);
    return { name, given, parts };
  }
}

function shown(value: Item): string {
  if (value === null) return "None";
  if (isKernel(value)) return written(value);
  return typeof value === "object" ? JSON.stringify(value) : typeof value === "string" ? `'${value}'` : String(value);
}

/** The name of the catalogue with the most pairs of letters in common, if it has half of them. */
function closest(name: string): string | undefined {
  const pairs = (word: string): string[] => [...word.toLowerCase()].map((_, i, all) => all.slice(i, i + 2).join(""));
  const own = pairs(name);
  const share = (known: string): number => {
    const theirs = pairs(known);
    return (2 * own.filter((p) => theirs.includes(p)).length) / (own.length + theirs.length);
  };
  const best = Object.keys(KERNELS).sort((a, b) => share(b) - share(a))[0]!;
  return share(best) > 0.3 ? best : undefined;
}

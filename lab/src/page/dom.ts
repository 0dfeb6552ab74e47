// Elements, the controls the page is made of, and colours as a canvas needs them.

type Child = Node | string | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void)>;

function filled<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== undefined && child !== false));
  return element;
}

/** An element; attributes that are functions listen to the event of their name. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

export function byId<E extends HTMLElement>(id: string): E {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as E;
}

/** Whether a slider among the children has the focus: what is in the hand is not to be made anew. */
export function inHand(host: HTMLElement): boolean {
  const held = document.activeElement;
  return held instanceof HTMLInputElement && held.type === "range" && host.contains(held);
}

/** Make the children of an element anew; the choice that has the focus keeps it. */
export function renew(host: HTMLElement, ...children: readonly Node[]): void {
  const held = document.activeElement;
  const place = held instanceof HTMLInputElement && host.contains(held) ? `[name="${held.name}"]:checked` : undefined;
  host.replaceChildren(...children);
  if (place) host.querySelector<HTMLInputElement>(place)?.focus();
}

/** A number to so many digits that count, without an exponent where one reads it better so. */
export function digits(value: number, count = 4): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "none";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [mantissa, exponent] = value.toExponential(Math.max(0, count - 3)).split("e") as [string, string];
    return `${mantissa}e${Number(exponent)}`.replaceAll("-", "−");
  }
  return String(Number(value.toPrecision(count))).replace("-", "−");
}

export interface SliderRange {
  readonly low: number;
  readonly high: number;
  /** Whether equal steps are equal factors. */
  readonly log?: boolean;
  readonly whole?: boolean;
}

/** A slider with its name and its value; a drag is one gesture. */
export function slider(
  name: string,
  title: string,
  range: SliderRange,
  value: number,
  change: (value: number, gesture: boolean) => void,
): HTMLElement {
  const to = (v: number): number => (range.log ? Math.log10(v) : v);
  const from = (v: number): number => {
    const value = range.log ? 10 ** v : v;
    return range.whole ? Math.round(value) : Number(value.toPrecision(3));
  };
  const shown = el("output", {}, digits(value));
  const [low, high] = [to(range.low), to(range.high)];
  let dragging = false;
  const input = el("input", {
    type: "range",
    name,
    min: low,
    max: high,
    step: range.whole && !range.log ? 1 : (high - low) / 400,
    "aria-label": title,
    "aria-valuetext": digits(value),
    input: () => {
      const now = from(Number(input.value));
      shown.textContent = digits(now);
      input.setAttribute("aria-valuetext", digits(now));
      change(now, dragging);
      dragging = true;
    },
    change: () => (dragging = false),
  });
  input.value = String(to(value));
  return el("label", { class: "slider" }, el("span", {}, title), shown, input);
}

/** A row of choices, of which one is taken. */
export function choice<T extends string>(
  name: string,
  options: readonly (readonly [T, string])[],
  taken: T,
  change: (value: T) => void,
): HTMLElement {
  const buttons = options.map(([value, title]) => {
    const input = el("input", { type: "radio", name, value, change: () => change(value) });
    input.checked = value === taken;
    return el("label", {}, input, el("span", {}, title));
  });
  return el("div", { class: "choice", role: "radiogroup" }, ...buttons);
}

// -- colours ----------------------------------------------------------------------------------------------

export type Rgb = readonly [number, number, number];

/** The colours of the style sheet, as they are in the light or the dark. */
export function palette(): (name: string) => Rgb {
  const known = new Map<string, Rgb>();
  const probe = el("span");
  document.body.append(probe);
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
  const read = (name: string): Rgb => {
    probe.style.color = `var(--${name})`;
    canvas.fillStyle = getComputedStyle(probe).color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return [r!, g!, b!];
  };
  for (const name of ["card", "ink", "muted", "line", "c0", "c1", "c2", "accent"]) known.set(name, read(name));
  probe.remove();
  return (name) => known.get(name)!;
}

export function css([r, g, b]: Rgb, alpha = 1): string {
  return `rgb(${r} ${g} ${b} / ${alpha})`;
}

export function mix(a: Rgb, b: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(a[i]! + share * (b[i]! - a[i]!))) as unknown as Rgb;
}

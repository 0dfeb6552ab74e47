// f under the loss before: swapping only the loss leaves a faint line of what it was.
import type { State } from "./state.ts";

export interface Drawn {
  readonly f: ArrayLike<number>;
  /** Cells of the grid on which f is known. */
  readonly side: number;
}

export class Before {
  private last: (Drawn & { readonly state: State }) | undefined;
  private shown: Drawn | undefined;

  /** Take note of what is drawn; what was drawn under another loss, where nothing but the loss has changed since. */
  than(state: State, now: Drawn): Drawn | undefined {
    const { last } = this;
    const same =
      last !== undefined && (["points", "kernel", "C", "task"] as const).every((key) => last.state[key] === state[key]);
    if (!same) this.shown = undefined;
    else if (last.state.loss !== state.loss) this.shown = last;
    this.last = { ...now, state };
    return this.shown;
  }
}

// The page, and what tests and benchmarks see of it.
import { numeric } from "./numeric/index.ts";

Object.assign(globalThis, { mercerLab: { numeric } });

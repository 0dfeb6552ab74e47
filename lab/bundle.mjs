// One HTML file of the page's parts: markup, style, program and core, the last two compressed.
//
//     node lab/bundle.mjs CORE.wasm OUT.html
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";

const [core, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const read = (name) => readFileSync(join(here, name), "utf8");

const bundled = await build({
  entryPoints: [join(here, "src/main.ts")],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  write: false,
});
const style = await transform(read("page.css"), { loader: "css", minify: true });
const packed = (bytes) => gzipSync(bytes, { level: 9 }).toString("base64");

const parts = {
  STYLE: style.code.trim(),
  PROGRAM: packed(bundled.outputFiles[0].contents),
  CORE: packed(readFileSync(core)),
};
const page = read("page.html").replace(/\/\* (STYLE) \*\/|<!-- (PROGRAM|CORE) -->/g, (_, a, b) => parts[a ?? b]);
writeFileSync(out, page);

// Answers of the built page, without a browser: node run.mjs PAGE <QUESTIONS.json >ANSWERS.json
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const page = readFileSync(process.argv[2], "utf8");
const unpacked = (id) =>
  gunzipSync(
    Buffer.from(page.match(new RegExp(`id="${id}">([^<]*)<`))[1], "base64"),
  );
new Function(unpacked("program").toString())();
const { Core, Points, eigenvalues, fit, lossOf, parse, proof, resolved, text, witness } = mercerLab.numeric;
const core = await Core.from(unpacked("core"));

const points = (X) => Points.of(X, X[0].length);
const kernelOf = (kernel, X) => resolved(parse(kernel), points(X));
const ways = {
  matrix: ({ kernel, X }) => [
    ...core.matrix(kernelOf(kernel, X), points(X)).view,
  ],
  cross: ({ kernel, X, Z }) => [
    ...core.matrix(parse(kernel), points(X), points(Z)).view,
  ],
  picture: ({ kernel, X, Z, v }) => [
    ...core.picture(parse(kernel), points(X), points(Z), v),
  ],
  fit: ({ kernel, X, y, loss, C, quantile }) => {
    const K = core.matrix(kernelOf(kernel, X), points(X));
    const done = fit(core, {
      K,
      y: Float64Array.from(y),
      loss: lossOf(loss, quantile),
      C,
      tol: 1e-13,
    });
    K.release();
    return { ...done, alpha: [...done.alpha], values: [...done.values] };
  },
  spectrum: ({ kernel, X }) => {
    const K = core.matrix(kernelOf(kernel, X), points(X)).view.slice();
    const values = eigenvalues(K, X.length);
    const shown = witness(K, X.length, values[0]);
    return { values: [...values], witness: shown ? { a: [...shown.a], value: shown.value } : null };
  },
  text: ({ kernel }) => text(parse(kernel)),
  proof: ({ kernel }) => proof(parse(kernel)),
};
const answer = (question) => {
  try {
    return ways[question.way](question);
  } catch (error) {
    return { error: error.message };
  }
};
process.stdout.write(
  JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(answer)),
);

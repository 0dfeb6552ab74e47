// What ridge regression asks of the core: products with a held triangle, and errors along a path of alphas.
#pragma once

#include "../isa.hpp"

namespace mercer {

// Rows `first` ... `first + rows - 1` of a symmetric matrix from column `first` on, `width` numbers apart: a multiple of
// 16, the last ones zero. Values below the diagonal are zero and those on it halved, so that each value is read once for
// both of its places.
struct Band {
  const float* values = nullptr;
  i64 first = 0, rows = 0, width = 0;
};

// With a tridiagonal matrix T + alpha = L D L' for each of `alphas` alphas: `below` has the entries of L under its
// diagonal, `inverse` those of 1 / D, `right` L^-1 z of `outputs` vectors z, times 1 / D. All are (n, alphas), and alphas
// is a multiple of 8.
struct Path {
  const double *below = nullptr, *inverse = nullptr;
  const double* right = nullptr;  // outputs x n x alphas
  i64 n = 0, alphas = 0, outputs = 0;
};

struct Ridge {
  // Adds the band's part of K v to out, for each of `count` vectors of `stride` numbers; both arrays end at or after
  // first + width.
  void (*product)(const Band&, const float* v, double* out, i64 count, i64 stride);
  // For each row q of n numbers: q' (T + alpha)^-1 q to `squares` (rows, alphas), and q' (T + alpha)^-1 z to `values`
  // (outputs, rows, alphas).
  void (*resolvent)(const Path&, const double* q, i64 rows, double* squares, double* values);
};

}  // namespace mercer

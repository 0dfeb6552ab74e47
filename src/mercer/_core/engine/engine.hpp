// What the core computes, independent of the instruction set that computes it.
//
// A block of kernel values is produced in three steps that never leave the cache:
//   1. statistics of each pair of points (dot products, squared distances, ...) for a strip of a few
//      rows against a few hundred columns;
//   2. the kernel's formula, a short straight-line program, applied to that strip;
//   3. a consumer: store the strip, or multiply it into vectors and forget it.
#pragma once

#include <vector>

#include "../isa.hpp"

// In the page of lab/ all points are dense: what tells of others is a constant, and the compiler leaves their code out.
#if defined(MERCER_DENSE_ALONE)
#define DENSE_ALONE static constexpr
#else
#define DENSE_ALONE
#endif

namespace mercer {

// Sums over coordinates j of a function of (x_j, z_j).
enum class Stat : int { dot, sqdist, l1, chi2, minimum, sqsum };

// Every operation sees its first operand as c * a + e, so that scaling and shifting cost no pass of their own.
enum class Op : int {
  stat,      // statistic number a
  row,       // row vector number a (one value per left point)
  col,       // column vector number a (one value per right point)
  add, sub, mul, div, min, max, atan2,     // of the first operand and register b
  affine,                                  // the first operand itself
  exp, log, log1p, sqrt, tanh, iszero,     // a function of it
  rdiv, lower, upper, powi, powc,          // with the constant p: p / x, max(x, p), min(x, p), x^p whole, x^p real
  damp,                                    // (1 + r + p r^2) exp(-r) of its square root r
  exp_add, powi_add, damp_add,  // exp, powi and damp plus register b
  outer,     // the first operand plus row vector number b and column vector number p
};

// Register dst = op(c * register a + e, register b or constant p).
struct Instruction {
  Op op;
  int dst, a, b;
  double c, e, p;
};

struct Program {
  std::vector<Instruction> code;
  int registers = 0;
  int result = 0;
};

template <class T>
struct Sparse {  // compressed rows, indices sorted
  const T* data = nullptr;
  const std::int32_t* index = nullptr;
  const i64* start = nullptr;
};

template <class T>
struct Columns {  // the same by column, rows ascending; each list ends with a row beyond all others
  const T* data = nullptr;
  const std::int32_t* row = nullptr;
  const i64* start = nullptr;
  // Columns that many rows have, once more with their zeros: which of them each column is, or -1, and all, n rows each.
  const std::int32_t* full_number = nullptr;
  const double* full = nullptr;
  i64 n = 0;
};

template <class T>
struct Operand {  // the two sets of points that one statistic compares
  Stat kind = Stat::dot;
  i64 d = 0;
  const T* x = nullptr;        // left points, row-major
  const T* z = nullptr;        // right points, packed by Engine::pack
  const T* weight = nullptr;   // per-coordinate factor of (x_j - z_j), or null
  T low = 0, high = 0;         // float32 values between these are summed again in double (see Strip::refine)
  DENSE_ALONE bool sparse = false;  // both sides compressed
  DENSE_ALONE bool thin = false;    // the left side compressed, the right one packed
  Sparse<T> xs, zs;
  Columns<T> zc;  // zs by column, if at hand
  // Squared norms by Engine::norms, whole panels of them on the right: squared distances are then taken from inner
  // products of points that were moved to a common centre.
  DENSE_ALONE const T* x_norms = nullptr;
  const T* z_norms = nullptr;
  // The same of sparse points, in double. Where such a distance is below the share `near` of |x|^2 + |z|^2, it is
  // taken from differences instead.
  DENSE_ALONE const double* x_squares = nullptr;
  const double* z_squares = nullptr;
  double near = 0;
  // Inner products of coarse points: each number of x and z is a pair of 16-bit whole ones (in its bits), d counts pairs,
  // and a point is its whole numbers times its unit; whole panels of units on the right.
  DENSE_ALONE const T* x_unit = nullptr;
  const T* z_unit = nullptr;
  double reach = 0;  // no distance by inner products is larger; 0 where there is none
};

template <class T>
struct Job {
  Program program;
  std::vector<Operand<T>> operands;
  std::vector<const T*> rows, cols;
  i64 n = 0, m = 0;  // left and right points
};

template <class T>
struct Engine {
  i64 panel;  // points per packed panel
  i64 band;   // rows worked on together
  i64 (*chunk)(i64 d);  // coordinates whose products are summed before they are added to the rest
  T (*extent)(const T* x, i64 size);
  void (*pack)(const T* z, i64 m, i64 d, T* out);
  void (*norms)(const T* x, i64 n, i64 d, i64 chunk, T* out);
  void (*sparse_norms)(const Sparse<T>& x, i64 n, double* out);
  // out[(r - r0) * ld + (c - c0)]; returns false if a value is not finite.
  bool (*dense)(const Job<T>&, i64 r0, i64 r1, i64 c0, i64 c1, T* out, i64 ld);
  // Rows r0..r1 from the diagonal rightwards, mirrored; out is the whole n x n matrix.
  bool (*dense_symmetric)(const Job<T>&, i64 r0, i64 r1, T* out);
  // out[r - r0, :] += sum_c K[r, c] v[c, :], v is m x k row-major, sums kept in double.
  void (*matvec)(const Job<T>&, i64 r0, i64 r1, const T* v, i64 k, double* out);
  // The part of K v, each pair once, that the bands of rows first, first + step, ... contribute.
  void (*matvec_symmetric)(const Job<T>&, i64 first, i64 step, const T* v, i64 k, double* out);
};

}  // namespace mercer

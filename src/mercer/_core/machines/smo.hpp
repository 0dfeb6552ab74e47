// Sequential minimal optimisation on one block of a kernel matrix, and what surrounds it: which points to work on next,
// and how far from the optimum a solution can be.
//
// The problem (solvers/dual/problem.py): minimise 1/2 b'Kb + q'b + w'(p + m), b = p - m, 0 <= p <= upper, 0 <= m <= lower, with
// sum(b) fixed (one group) or sum(p) and sum(m) fixed (two groups).
#pragma once

#include "../isa.hpp"

namespace mercer {

// Where SMO stands: a row of the history of a fit (solvers/run.py).
struct Look {
  double steps, primal, dual, gap, support, seconds;  // gap: relative
};

// The looks after 1, 4, 16, ... steps, behind one that says where the steps begin. They are few, and need not see the gap
// to the last digit, so that keeping them costs a small share of the steps.
struct Course {
  Look* looks = nullptr;
  i64 room = 0;
  i64 used = 1, steps = 0, next = 1;
  double dual = 0, began = 0;  // began: in seconds of `now`
};

// The variables of a problem or of a block of it. F = Kb + q is the gradient of the smooth part.
struct Variables {
  i64 n = 0;
  double* gradient = nullptr;
  double* plus = nullptr;
  double* minus = nullptr;
  const double* upper = nullptr;
  const double* lower = nullptr;
  const double* width = nullptr;
  int groups = 1;
  Course* course = nullptr;  // where one is kept
};

struct Steps {
  i64 count = 0;
  double violation = 0;  // of the conditions of optimality, when it stopped
};

struct Offsets {
  double plus = 0, minus = 0;  // multipliers: F + w + plus and -F + w + minus are the reduced gradients
  double gap = 0;
};

// Many small problems whose points are rows of one matrix, one after the other.
struct Batch {
  i64 count = 0, matrix = 0;          // problems, points of the matrix
  const i64* start = nullptr;         // where each problem's entries begin in the vectors
  const std::int32_t* row = nullptr;  // which point of the matrix each entry is
  const double* linear = nullptr;
  double tol = 0;                     // relative duality gap
  i64 max_steps = 0;                  // per problem
  Look* looks = nullptr;              // room for so many per problem, all 0, where courses are kept
  i64 room = 0;
};

struct Outcome {
  double primal, dual, rounding, kkt, plus, minus;  // both objectives and the offsets at which they are this close
  double steps, good;                               // good: 1 where the gap is what was asked for
};

// The symmetric matrix [a, c; c', b] of two classes: a is n x n, b is m x m, c is n x m with rows ld apart.
template <class T>
struct Pair {
  const T *a = nullptr, *b = nullptr, *c = nullptr;
  i64 n = 0, m = 0, ld = 0;
};

template <class T>
struct Smo {
  // Steps within the block until the violation is at most tol. K is n x n with rows ld apart. With `exact` the
  // gradient is computed again in double at the end and the steps resume if rounding had hidden a violation.
  // A course is kept where there are looks, which have room for so many.
  Steps (*solve)(const T* K, i64 ld, Variables v, double tol, i64 max_steps, bool exact, Look* looks, i64 room);
  // Solve each problem of a batch; v holds the entries of all. What resists is left for others to finish.
  void (*batch)(const T* K, const Batch&, Variables v, Outcome* out);
  // One problem on a pair of classes; `rows` is room for its matrix, of which only the rows that SMO looks at are made.
  Outcome (*pair)(const Pair<T>&, T* rows, Variables v, const double* linear, double tol, i64 max_steps, Look* looks,
                  i64 room);
  // Steps among the points at[0..count) of the n x n matrix K; then all n gradients are told what moved, in double.
  Steps (*part)(const T* K, Variables v, const std::int32_t* at, i64 count, double tol, i64 max_steps);
  // gradient[0..n) += sum_i change[i] K[at[i], 0..n), in double.
  void (*add_rows)(const T* K, i64 n, const std::int32_t* at, const double* change, i64 count, double* gradient);
};

struct Selection {
  // The most violating points among hot[0..count), at most `fresh` of them, then free ones of old[0..kept), in all at
  // most `size`; returns how many, and the violation over all of hot.
  i64 (*select)(const Variables&, const std::int32_t* hot, i64 count, const std::int32_t* old, i64 kept, i64 fresh,
                i64 size, std::int32_t* out, double* violation);
  // The multipliers with the smallest duality gap, and that gap.
  Offsets (*offsets)(const Variables&);
};

}  // namespace mercer

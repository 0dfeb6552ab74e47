// One look at every row of a linear model: its value, its losses, and what they add to the gradient and to the Hessian,
// while the row is in the first-level cache.
//
// The problem (solvers/linear/problem.py): f = x.w + shift, slacks z = target - sign f on each side of a row, loss
// max(0, z) or its square times the cost of the row.
#pragma once

#include "../isa.hpp"

namespace mercer {

template <class T>
struct LinearData {
  const T* x = nullptr;  // n rows of d numbers
  i64 n = 0, d = 0;
  i64 sides = 1;
  const double *sign = nullptr, *target = nullptr;  // sides x n
  const double* cost = nullptr;                     // n
  bool one_target = false, one_cost = false;        // one number per side, one number, instead
  bool squared = false;
};

// alpha = clip(1/2 + z / (2 half), 0, 1) cost for a hinge, 2 cost max(0, z) for its square. Rows with a side at
// |z| < half, or with z > 0 where squares are, have curvature.
struct LinearSweep {
  const double* w = nullptr;
  double shift = 0, half = 0;
  double* alpha = nullptr;       // sides x n, or not wanted
  std::int32_t* band = nullptr;  // the rows with curvature, or not wanted
  double* pull = nullptr;        // d + 1: sum of beta x and of beta, with beta = sum over sides of sign alpha
  // The Hessian of the rows with curvature, of every `thin`th of them at random: sum of weight a a' with
  // a = ((x - centre) / scale, 1). Or not wanted.
  double* gram = nullptr;
  const double *centre = nullptr, *inverse_scale = nullptr;
  i64 thin = 1;
};
struct LinearSums {
  double risk = 0, gain = 0, square = 0;  // sum of the losses, of target alpha, of alpha^2 / cost
  i64 curved = 0;                         // rows with curvature
};

// What proves a solution: both objectives of a given alpha, and how far each row is from its optimality condition.
struct LinearProof {
  const double *w = nullptr, *apart = nullptr;  // apart: by how much the w that alpha implies differs
  double shift = 0, apart_shift = 0;
  const double* alpha = nullptr;
  double unit = 1;         // turns slacks into changes of alpha, for the violation
  double* pull = nullptr;  // as for LinearSweep
};
struct LinearWorst {
  double risk = 0, gain = 0, square = 0;
  double violation = 0, apart = 0;
};

template <class T>
struct Linear {
  LinearSums (*sweep)(const LinearData<T>&, const LinearSweep&, i64 first, i64 last);
  LinearWorst (*proof)(const LinearData<T>&, const LinearProof&, i64 first, i64 last);
};

}  // namespace mercer

// Smooth losses: a factor of the kernel matrix, and Newton steps in its columns.
//
// The matrix of a smooth kernel has few directions to rounding, so that with K = L L' and f = L w + b the problem
// 1/2 |w|^2 + C sum_i loss(y_i, f_i) is one of few unknowns.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/simd.hpp"

namespace lab {

using mercer::baseline::lanes;
using mercer::baseline::load;
using mercer::baseline::splat;
using mercer::baseline::store;
using mercer::baseline::sum;
using mercer::baseline::V;
using std::size_t;
using Row = V<double>;

inline double dot(const double* a, const double* b, int n) {
  Row total[2] = {};
  int i = 0;
  for (; i + 2 * lanes<double> <= n; i += 2 * lanes<double>)
    for (int k = 0; k < 2; ++k) total[k] += load(a + i + k * lanes<double>) * load(b + i + k * lanes<double>);
  double rest = sum<double>(total[0] + total[1]);
  for (; i < n; ++i) rest += a[i] * b[i];
  return rest;
}

// to[0..n) += c from[0..n)
inline void add(double* to, double c, const double* from, int n) {
  int i = 0;
  for (; i + lanes<double> <= n; i += lanes<double>) store(to + i, load(to + i) + c * load(from + i));
  for (; i < n; ++i) to[i] += c * from[i];
}

// Pivoted Cholesky: L is n x r by rows, n numbers apart.
inline int factor(const double* K, int n, double share, double* L) {
  std::vector<double> left(n);  // of the diagonal
  double largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, left[i] = K[size_t(i) * n + i]);
  int r = 0;
  for (; r < n; ++r) {
    const int p = int(std::max_element(left.begin(), left.end()) - left.begin());
    if (!(left[p] > share * largest)) break;
    const double root = std::sqrt(left[p]);
    const double* pivot = L + size_t(p) * n;
    for (int i = 0; i < n; ++i) {
      double* row = L + size_t(i) * n;
      row[r] = i == p ? root : left[i] == 0 ? 0 : (K[size_t(p) * n + i] - dot(row, pivot, r)) / root;
    }
    for (int i = 0; i < n; ++i)
      left[i] = i == p ? 0 : std::max(0.0, left[i] - L[size_t(i) * n + r] * L[size_t(i) * n + r]);
  }
  return r;
}

// The lower triangle of a positive definite matrix becomes its Cholesky factor.
inline bool cholesky(double* A, int n) {
  for (int j = 0; j < n; ++j) {
    double* own = A + size_t(j) * n;
    const double d = own[j] - dot(own, own, j);
    if (!(d > 0)) return false;
    own[j] = std::sqrt(d);
    for (int i = j + 1; i < n; ++i) {
      double* row = A + size_t(i) * n;
      row[j] = (row[j] - dot(row, own, j)) / own[j];
    }
  }
  return true;
}

inline void solve(const double* L, int n, double* x) {
  for (int i = 0; i < n; ++i) x[i] = (x[i] - dot(L + size_t(i) * n, x, i)) / L[size_t(i) * n + i];
  for (int i = n - 1; i >= 0; --i) {
    x[i] /= L[size_t(i) * n + i];
    add(x, -x[i], L + size_t(i) * n, i);
  }
}

enum class Loss : int { squared, logistic, squared_hinge };

struct Value {
  double value, slope, curvature;
};

// As in src/mercer/losses.
inline Value at(Loss loss, double y, double f) {
  if (loss == Loss::squared) return {0.5 * (f - y) * (f - y), f - y, 1};
  const double m = y * f;
  if (loss == Loss::squared_hinge) {
    const double s = std::max(0.0, 1 - m);
    return {s * s, -2 * y * s, m < 1 ? 2.0 : 0.0};
  }
  const double e = std::exp(-std::abs(m)), p = (m > 0 ? e : 1) / (1 + e);  // of the other label
  return {std::log1p(e) + std::max(0.0, -m), -y * p, p * (1 - p)};
}

inline double total(Loss loss, const double* y, const double* f, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += at(loss, y[i], f[i]).value;
  return sum;
}

// b for which the slopes sum to 0, by safeguarded Newton steps: the sum increases with b.
inline void settle(Loss loss, const double* y, double* f, int n, double& b) {
  double low = -HUGE_VAL, high = HUGE_VAL;
  for (int step = 0; step < 60; ++step) {
    double slope = 0, curvature = 0;
    for (int i = 0; i < n; ++i) {
      const Value v = at(loss, y[i], f[i]);
      slope += v.slope;
      curvature += v.curvature;
    }
    (slope > 0 ? high : low) = b;
    double next = b - slope / std::max(curvature, 1e-12);
    if (!(next > low && next < high)) next = std::isfinite(low + high) ? low + (high - low) / 2 : b - (slope > 0 ? 1 : -1);
    if (slope == 0 || std::abs(next - b) <= 1e-16 * (1 + std::abs(b))) break;
    for (int i = 0; i < n; ++i) f[i] += next - b;
    b = next;
  }
}

inline int newton(const double* L, int n, int r, const double* y, Loss loss, double C, double* w, double* b, double* f,
                  int max_steps) {
  std::vector<double> H(size_t(r) * r), gradient(r), border(r), move(n), trial(n), weight(n);
  std::vector<double> T(size_t(r) * n);  // L' by rows, which the Hessian reads from end to end
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < r; ++j) T[size_t(j) * n + i] = L[size_t(i) * n + j];
  for (int i = 0; i < n; ++i) f[i] = dot(L + size_t(i) * n, w, r) + *b;
  double objective = 0.5 * dot(w, w, r) + C * total(loss, y, f, n);
  int step = 0;
  for (; step < max_steps; ++step) {
    double slope = 0, curvature = 0;
    std::copy_n(w, r, gradient.begin());
    std::fill(border.begin(), border.end(), 0.0);
    for (int i = 0; i < n; ++i) {
      const Value v = at(loss, y[i], f[i]);
      slope += C * v.slope;
      curvature += weight[i] = C * v.curvature;
      add(gradient.data(), C * v.slope, L + size_t(i) * n, r);
      add(border.data(), weight[i], L + size_t(i) * n, r);
    }
    for (int j = 0; j < r; ++j) {
      const double* own = T.data() + size_t(j) * n;
      for (int i = 0; i < n; ++i) trial[i] = weight[i] * own[i];
      for (int k = j; k < r; ++k) H[size_t(k) * r + j] = dot(trial.data(), T.data() + size_t(k) * n, n) + (j == k);
    }
    if (!cholesky(H.data(), r)) break;
    std::vector<double> p(gradient), q(border);
    solve(H.data(), r, p.data());
    solve(H.data(), r, q.data());
    // Eliminating b: no point may bend (squared hinge, all beyond their margins), then b stays.
    const double rest = curvature - dot(border.data(), q.data(), r);
    const double by = rest > 1e-12 * curvature ? (dot(border.data(), p.data(), r) - slope) / rest : 0;
    for (int j = 0; j < r; ++j) p[j] = -p[j] - by * q[j];
    const double fall = dot(gradient.data(), p.data(), r) + slope * by;
    for (int i = 0; i < n; ++i) move[i] = dot(L + size_t(i) * n, p.data(), r) + by;
    double t = 1, next = objective;
    for (; t > 1e-10; t /= 2) {
      double square = 0;
      for (int j = 0; j < r; ++j) square += (w[j] + t * p[j]) * (w[j] + t * p[j]);
      for (int i = 0; i < n; ++i) trial[i] = f[i] + t * move[i];
      next = 0.5 * square + C * total(loss, y, trial.data(), n);
      if (next <= objective + 1e-4 * t * fall + 1e-15 * std::abs(objective)) break;
    }
    if (t <= 1e-10) break;
    add(w, t, p.data(), r);
    *b += t * by;
    std::copy(trial.begin(), trial.end(), f);
    objective = next;
    if (-fall <= 1e-15 * std::abs(objective)) break;
  }
  settle(loss, y, f, n, *b);
  return step;
}

}  // namespace lab

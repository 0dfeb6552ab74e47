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

// Four rows of A times two rows of B, all products at once: each number that is read is used more than once.
inline void products(const double* A, const double* B, size_t ld, int n, double out[4][2]) {
  Row total[4][2] = {};
  int i = 0;
  for (; i + lanes<double> <= n; i += lanes<double>) {
    const Row b[2] = {load(B + i), load(B + ld + i)};
    for (int r = 0; r < 4; ++r) {
      const Row a = load(A + r * ld + i);
      for (int c = 0; c < 2; ++c) total[r][c] += a * b[c];
    }
  }
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 2; ++c) {
      out[r][c] = sum<double>(total[r][c]);
      for (int k = i; k < n; ++k) out[r][c] += A[r * ld + k] * B[c * ld + k];
    }
}

// use(i, j, a_i . b_j) for 0 <= j <= i < count, rows ld apart.
template <class Use>
void lower_products(const double* A, const double* B, size_t ld, int count, int n, Use use) {
  for (int j = 0; j < count; j += 2)
    for (int i = j; i < count; i += 4) {
      if (i + 4 <= count && j + 2 <= count) {
        double block[4][2];
        products(A + i * ld, B + j * ld, ld, n, block);
        for (int r = 0; r < 4; ++r)
          for (int c = 0; c < 2; ++c)
            if (j + c <= i + r) use(i + r, j + c, block[r][c]);
      } else {
        for (int r = i; r < std::min(i + 4, count); ++r)
          for (int c = j; c <= std::min(r, j + 1); ++c) use(r, c, dot(A + r * ld, B + c * ld, n));
      }
    }
}

// Pivoted Cholesky: L is n x r by rows, n numbers apart, r at most `most`.
inline int factor(const double* K, int n, double share, int most, double* L) {
  std::vector<double> left(n);  // of the diagonal
  double largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, left[i] = K[size_t(i) * n + i]);
  int r = 0;
  for (; r < std::min(n, most); ++r) {
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

// The lower triangle of a positive definite matrix becomes its Cholesky factor, some columns at a time.
inline bool cholesky(double* A, int n) {
  constexpr int some = 32;
  const size_t ld = n;
  for (int from = 0; from < n; from += some) {
    const int to = std::min(n, from + some);
    for (int j = from; j < to; ++j) {
      double* own = A + j * ld;
      const double d = own[j] - dot(own + from, own + from, j - from);
      if (!(d > 0)) return false;
      own[j] = std::sqrt(d);
      for (int i = j + 1; i < n; ++i) {
        double* row = A + i * ld;
        row[j] = (row[j] - dot(row + from, own + from, j - from)) / own[j];
      }
    }
    const double* panel = A + to * ld + from;
    lower_products(panel, panel, ld, n - to, to - from,
                   [&](int i, int j, double value) { A[(to + i) * ld + to + j] -= value; });
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

// The step along a direction to where the objective is least: a root of its increasing slope, by safeguarded Newton steps.
// With the exact one the squared hinge ends in finitely many steps (Keerthi & DeCoste 2005). Moves f; returns the step.
inline double go(Loss loss, const double* y, double* f, const double* move, int n, double C, double slope, double bend) {
  double low = 0, high = HUGE_VAL, t = 1;
  for (int step = 0; step < 50; ++step) {
    double first = slope + t * bend, second = bend;
    for (int i = 0; i < n; ++i) {
      const Value v = at(loss, y[i], f[i] + t * move[i]);
      first += C * v.slope * move[i];
      second += C * v.curvature * move[i] * move[i];
    }
    (first > 0 ? high : low) = t;
    double next = t - first / second;
    if (!(next > low && next < high)) next = high < HUGE_VAL ? low + (high - low) / 2 : 2 * t;
    if (first == 0 || std::abs(next - t) <= 1e-12 * t) break;
    t = next;
  }
  for (int i = 0; i < n; ++i) f[i] += t * move[i];
  return t;
}

inline int newton(const double* L, int n, int r, const double* y, Loss loss, double C, double* w, double* b, double* f,
                  int max_steps) {
  std::vector<double> H(size_t(r) * r), gradient(r), border(r), move(n), weight(n);
  std::vector<double> T(size_t(r) * n), S(size_t(r) * n);  // L' by rows, and with each column times its weight
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < r; ++j) T[size_t(j) * n + i] = L[size_t(i) * n + j];
  for (int i = 0; i < n; ++i) f[i] = dot(L + size_t(i) * n, w, r) + *b;
  double objective = HUGE_VAL;
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
    for (int j = 0; j < r; ++j)
      for (int i = 0; i < n; ++i) S[size_t(j) * n + i] = weight[i] * T[size_t(j) * n + i];
    lower_products(T.data(), S.data(), n, r, n, [&](int i, int j, double v) { H[size_t(i) * r + j] = v + (i == j); });
    if (!cholesky(H.data(), r)) break;
    std::vector<double> p(gradient), q(border);
    solve(H.data(), r, p.data());
    solve(H.data(), r, q.data());
    // Eliminating b: no point may bend (squared hinge, all beyond their margins), then b stays.
    const double rest = curvature - dot(border.data(), q.data(), r);
    const double by = rest > 1e-12 * curvature ? (dot(border.data(), p.data(), r) - slope) / rest : 0;
    for (int j = 0; j < r; ++j) p[j] = -p[j] - by * q[j];
    const double fall = dot(gradient.data(), p.data(), r) + slope * by;
    if (!(fall < 0)) break;
    for (int i = 0; i < n; ++i) move[i] = dot(L + size_t(i) * n, p.data(), r) + by;
    const double t = go(loss, y, f, move.data(), n, C, dot(w, p.data(), r), dot(p.data(), p.data(), r));
    add(w, t, p.data(), r);
    *b += t * by;
    const double before = objective;
    objective = 0.5 * dot(w, w, r) + C * total(loss, y, f, n);
    if (loss == Loss::squared || -fall <= 1e-15 * objective || objective >= before) break;  // squared: one step is exact
  }
  settle(loss, y, f, n, *b);
  return std::min(step + 1, max_steps);
}

}  // namespace lab

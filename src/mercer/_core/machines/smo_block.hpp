// The steps of SMO within one block: which pair of variables moves, and how far.
#pragma once

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "../engine/statistics.hpp"
#include "smo.hpp"

namespace mercer::MERCER_ISA {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr int look_halvings = 4;  // for a history: leaves 1/16 of the violation, which shrinks with the gap

// The slope of the objective when b_i grows is F_i + up, when it shrinks F_i + down; infinite where it cannot.
struct Slopes {
  double up, down;
};
inline Slopes slopes(const Variables& v, int group, i64 i) {
  // Choices between two numbers, not branches: whether a point is at a bound cannot be guessed.
  const double w = v.width[i], p = v.plus[i], m = v.minus[i], upper = v.upper[i], lower = v.lower[i];
  const double grow = p < upper ? w : inf, shrink = m < lower ? -w : -inf;
  if (v.groups == 1) return {m > 0 ? -w : grow, p > 0 ? w : shrink};
  if (group == 0) return {grow, p > 0 ? w : -inf};
  return {m > 0 ? -w : inf, shrink};
}
inline double now() {
  std::timespec time{};
  std::timespec_get(&time, TIME_UTC);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}
// Keep the course of a problem in looks whose first says where the steps begin.
inline Course begin(Look* looks, i64 room) {
  Course c{looks, room};
  c.steps = i64(looks->steps);
  c.dual = looks->dual;
  c.began = now() - looks->seconds;
  while (c.next <= c.steps) c.next *= 4;
  return c;
}

// The multipliers with the smallest duality gap, after so many halvings of an interval of each in which they are.
struct Interval {
  double low, high;
};
Offsets offsets(const Variables& v, Interval plus, Interval minus, int halvings);
// The duality gap at given multipliers.
double gap_at(const Variables& v, double plus, double minus);

// How far b_i can go, up or down, before a bound or a kink of the objective.
inline double room_up(const Variables& v, int group, i64 i) {
  if (v.groups == 1 ? v.minus[i] > 0 : group == 1) return v.minus[i];
  return v.upper[i] - v.plus[i];
}
inline double room_down(const Variables& v, int group, i64 i) {
  if (v.groups == 1 ? v.plus[i] > 0 : group == 0) return v.plus[i];
  return v.lower[i] - v.minus[i];
}
// Set a variable exactly on its bound when the whole room is used: the bound's test is an equality.
inline void move_up(const Variables& v, int group, i64 i, double t, bool all) {
  if (v.groups == 1 ? v.minus[i] > 0 : group == 1) v.minus[i] = all ? 0.0 : std::max(0.0, v.minus[i] - t);
  else v.plus[i] = all ? v.upper[i] : std::min(v.upper[i], v.plus[i] + t);
}
inline void move_down(const Variables& v, int group, i64 i, double t, bool all) {
  if (v.groups == 1 ? v.plus[i] > 0 : group == 0) v.plus[i] = all ? 0.0 : std::max(0.0, v.plus[i] - t);
  else v.minus[i] = all ? v.lower[i] : std::min(v.lower[i], v.minus[i] + t);
}

// 1 / v to the dozen bits that a choice needs, where the processor has it for less than a division.
template <class T>
inline V<T> rough_inverse(V<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm512_rcp14_ps((__m512)v);
  else return (V<T>)_mm512_rcp14_pd((__m512d)v);
#else
#if defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm256_rcp_ps((__m256)v);
#endif
  return splat<T>(T(1)) / v;
#endif
}
template <class T>
inline T least(V<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_reduce_min_ps((__m512)v);
  else return _mm512_reduce_min_pd((__m512d)v);
#else
  T best = v[0];
  for (int k = 1; k < lanes<T>; ++k) best = v[k] < best ? v[k] : best;
  return best;
#endif
}
// The first lane that holds x; 0 where none does.
template <class T>
inline int lane_of(V<T> v, T x) {
#if defined(__AVX512F__)
  unsigned found;
  if constexpr (sizeof(T) == 4) found = _mm512_cmp_ps_mask((__m512)v, (__m512)splat<T>(x), _CMP_EQ_OQ);
  else found = _mm512_cmp_pd_mask((__m512d)v, (__m512d)splat<T>(x), _CMP_EQ_OQ);
  return found ? __builtin_ctz(found) : 0;
#else
  for (int k = 0; k < lanes<T>; ++k)
    if (v[k] == x) return k;
  return 0;
#endif
}

// The smallest (or largest) entry with its place, over lanes that run side by side.
template <class T>
struct Best {
  V<T> value;
  I<T> place;
  explicit Best(T start) : value(splat<T>(start)), place(splat_bits<T>(-1)) {}
  void smaller(V<T> x, I<T> i) {
    const I<T> take = x < value;
    value = take ? x : value;
    place = take ? i : place;
  }
  void larger(V<T> x, I<T> i) {
    const I<T> take = x > value;
    value = take ? x : value;
    place = take ? i : place;
  }
  std::pair<T, i64> smallest() const { return at(least<T>(value)); }
  std::pair<T, i64> largest() const { return at(-least<T>(-value)); }

 private:
  std::pair<T, i64> at(T best) const {
    typename vec<T>::int_t places[lanes<T>];
    std::memcpy(places, &place, sizeof places);
    return {best, places[lane_of<T>(value, best)]};
  }
};

template <class M>
class Block {
  using T = typename M::value;

 public:
  Block(M& K, Variables v) : K_(K), v_(v), size_((v.n + 2 * lanes<T> - 1) / (2 * lanes<T>) * (2 * lanes<T>)) {
    const auto size = static_cast<std::size_t>(size_);
    for (Buffer<T>* b : {&F_, &diag_}) b->resize(size, T(0));
    for (int g = 0; g < v.groups; ++g) {
      up_[g].resize(size, T(inf));
      down_[g].resize(size, T(-inf));
    }
    for (i64 i = 0; i < v.n; ++i) {
      diag_[i] = K.diag(i);
      refresh(i);
    }
    load_gradient();
    T largest = 0;
    for (i64 i = 0; i < v.n; ++i) largest = std::max(largest, std::abs(diag_[i]));
    flat_ = largest * (sizeof(T) == 4 ? T(1e-7) : T(1e-14));
    if (!(flat_ > 0)) flat_ = std::numeric_limits<T>::min();
  }

  void load_gradient() {
    for (i64 i = 0; i < v_.n; ++i) F_[i] = static_cast<T>(v_.gradient[i]);
  }

  Steps run(double tol, i64 max_steps) {
    Steps steps;
    i64 i = 0, j = 0;  // the pair that moved last, and by how much
    T t = 0;
    for (;;) {
      int group = 0;
      T slope = 0;
      const i64 was = i;
      steps.violation = advance(was, j, t, group, i, slope);
      if (v_.course && v_.course->steps == v_.course->next) look();
      if (i < 0 || !(steps.violation > tol) || steps.count >= max_steps) return steps;
      j = partner(group, i, slope);
      if (j < 0) {  // rounding alone made the violation
        steps.violation = 0;
        return steps;
      }
      const double fall = double(F_[j]) + down_[group][j] - slope;
      const double curve = double(diag_[i]) + diag_[j] - 2 * double(K_.row(i)[j]);
      const double up = room_up(v_, group, i), down = room_down(v_, group, j);
      const double room = std::min(up, down);
      double step = curve > flat_ ? fall / curve : fall / flat_;
      if (!(step < room)) step = room;
      move_up(v_, group, i, step, step >= up);
      move_down(v_, group, j, step, step >= down);
      refresh(i);
      refresh(j);
      t = static_cast<T>(step);
      ++steps.count;
      if (v_.course) {
        ++v_.course->steps;
        v_.course->dual += step * (fall - 0.5 * curve * step);
      }
    }
  }

 private:
  void refresh(i64 i) {
    for (int g = 0; g < v_.groups; ++g) {
      const Slopes s = slopes(v_, g, i);
      up_[g][i] = static_cast<T>(s.up);
      down_[g][i] = static_cast<T>(s.down);
    }
  }

  // Tell the course of the fit where the steps stand.
  void look() {
    Course& c = *v_.course;
    c.next *= 4;
    if (c.used == c.room) return;
    Buffer<double> gradient(F_.begin(), F_.begin() + v_.n);
    Variables v = v_;
    v.gradient = gradient.data();
    Interval inside[2];
    for (int g = 0; g < v.groups; ++g) {  // beyond the most violating pair every slope has one sign
      T low = T(inf), high = T(-inf);
      for (i64 i = 0; i < v.n; ++i) {
        low = std::min(low, F_[i] + up_[g][i]);
        high = std::max(high, F_[i] + down_[g][i]);
      }
      inside[g] = {std::min(double(low), double(high)), std::max(double(low), double(high))};
    }
    const bool phantom = std::isinf(v.upper[v.n - 1]);  // without an offset (solvers/dual/problem.py)
    if (phantom) --v.n;
    i64 support = 0;
    for (i64 i = 0; i < v.n; ++i) support += v.plus[i] != v.minus[i];
    const double primal = c.dual + (phantom ? gap_at(v, 0, 0) : offsets(v, {-inside[0].high, -inside[0].low}, inside[1], look_halvings).gap);
    const double size = std::max(std::abs(primal), std::abs(c.dual));
    c.looks[c.used++] = {double(c.steps),  primal, c.dual, size > 0 ? (primal - c.dual) / size : 0.0,
                         double(support), now() - c.began};
  }

  // Apply the last step to the gradient and find the point whose growth pays most; returns the violation.
  double advance(i64 i, i64 j, T t, int& group, i64& next, T& slope) {
    constexpr i64 L = lanes<T>;
    const T *a = nullptr, *b = nullptr;
    if (t != T(0)) {
      a = K_.row(i);
      b = K_.row(j);
    }
    double worst = 0;
    next = -1;
    for (int g = 0; g < v_.groups; ++g) {
      const T* up = up_[g].data();
      const T* down = down_[g].data();
      T* F = F_.data();
      Best<T> low[2] = {Best<T>(T(inf)), Best<T>(T(inf))};
      V<T> high[2] = {splat<T>(T(-inf)), splat<T>(T(-inf))};
      I<T> place = first_;
      const i64 whole = M::padded ? size_ : v_.n / (2 * L) * (2 * L);
      const auto visit = [&](i64 k, int lane, V<T> f) {
        low[lane].smaller(f + load(up + k), place);
        high[lane] = max<T>(high[lane], f + load(down + k));
        place += step_;
      };
      const bool moved = g == 0 && t != T(0);
      if (moved) {
        for (i64 k = 0; k < whole; k += 2 * L) {
          const V<T> f0 = load(F + k) + t * (load(a + k) - load(b + k));
          const V<T> f1 = load(F + k + L) + t * (load(a + k + L) - load(b + k + L));
          store(F + k, f0);
          store(F + k + L, f1);
          visit(k, 0, f0);
          visit(k + L, 1, f1);
        }
        for (i64 k = whole; k < v_.n; ++k) F[k] += t * (a[k] - b[k]);
      } else {
        for (i64 k = 0; k < whole; k += 2 * L) {
          visit(k, 0, load(F + k));
          visit(k + L, 1, load(F + k + L));
        }
      }
      for (i64 k = whole; k < size_; k += L) visit(k, 0, load(F + k));
      low[0].smaller(low[1].value, low[1].place);
      const auto best = low[0].smallest();
      const T top = -least<T>(-max<T>(high[0], high[1]));
      const double violation = double(top) - double(best.first);
      if (best.second >= 0 && violation > worst) {
        worst = violation;
        group = g;
        next = best.second;
        slope = best.first;
      }
    }
    return worst;
  }

  // The partner of i with the largest fall of the objective to second order (Fan, Chen & Lin 2005).
  i64 partner(int group, i64 i, T slope) {
    constexpr i64 L = lanes<T>;
    const T* row = K_.row(i);
    const T* down = down_[group].data();
    const T* F = F_.data();
    const T own = diag_[i];
    Best<T> best[2] = {Best<T>(T(0)), Best<T>(T(0))};
    I<T> place = first_;
    const V<T> floor = splat<T>(flat_);
    const auto gain = [&](i64 k, V<T> values) {
      const V<T> fall = max<T>(load(F + k) + load(down + k) - slope, V<T>{});
      const V<T> curve = max<T>(own + load(diag_.data() + k) - T(2) * values, floor);
      return fall * (fall * rough_inverse<T>(curve));
    };
    const i64 whole = M::padded ? size_ : v_.n / (2 * L) * (2 * L);
    for (i64 k = 0; k < whole; k += 2 * L) {
      best[0].larger(gain(k, load(row + k)), place);
      place += step_;
      best[1].larger(gain(k + L, load(row + k + L)), place);
      place += step_;
    }
    for (i64 k = whole; k < size_; k += L) {
      alignas(64) T rest[lanes<T>] = {};
      for (i64 q = k; q < std::min(v_.n, k + L); ++q) rest[q - k] = row[q];
      best[0].larger(gain(k, load(rest)), place);
      place += step_;
    }
    best[0].larger(best[1].value, best[1].place);
    return best[0].largest().second;
  }

  static I<T> count_up() {
    I<T> v;
    for (int k = 0; k < lanes<T>; ++k) v[k] = k;
    return v;
  }

  M& K_;
  Variables v_;
  i64 size_;
  T flat_;
  Buffer<T> F_, diag_, up_[2], down_[2];
  const I<T> first_ = count_up(), step_ = splat_bits<T>(lanes<T>);
};

}  // namespace mercer::MERCER_ISA

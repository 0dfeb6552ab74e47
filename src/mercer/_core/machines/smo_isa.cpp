// SMO for one instruction set: this file is compiled once per MERCER_ISA with its own flags.
#include "smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../engine/statistics.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mercer::MERCER_ISA {

constexpr double inf = std::numeric_limits<double>::infinity();

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

// Where the rows of a problem's matrix come from. SMO looks at few of them: those of other shapes than a plain matrix
// are put together when they are first asked for.
template <class T>
struct Plain {
  using value = T;
  static constexpr bool padded = false;  // whether rows have zeros up to whole registers
  const T* K;
  i64 ld;
  const T* row(i64 i) { return K + i * ld; }
  T diag(i64 i) const { return K[i * ld + i]; }
};
template <class T>
struct Lazy {
  using value = T;
  static constexpr bool padded = false;
  Lazy(i64 n, i64 ld, T* rows) : rows_(rows), n_(n), ld_(ld), ready_(static_cast<std::size_t>(n), char(0)) {}

 protected:
  T* rows_;
  i64 n_, ld_;
  Buffer<char> ready_;
};
// Some rows and columns of a matrix, in rows of whole registers with zeros at their ends. On AVX-512 each register of
// the matrix is packed at once where enough of its entries are taken.
template <class T>
struct Gathered : Lazy<T> {
  static constexpr bool padded = true;
  // Room for at least one more register at the end of a row; rows a page apart would fall into the same cache lines.
  static i64 stride(i64 n) {
    constexpr i64 two = 2 * lanes<T>;
    const i64 ld = (n + lanes<T> + two - 1) / two * two;
    return ld * i64(sizeof(T)) % 4096 ? ld : ld + two;
  }
  Gathered(const T* K, i64 ld, const std::int32_t* at, i64 n, T* rows)
      : Lazy<T>(n, stride(n), rows), K(K), ld(ld), at(at) {
#if defined(__AVX512F__)
    constexpr std::int32_t L = lanes<T>;
    for (i64 j = 0; j < n; ++j) {
      const std::int32_t first = at[j] / L * L;
      const unsigned bit = 1u << (at[j] - first);
      if (pieces_.empty() || pieces_.back().first != first || pieces_.back().taken >= bit)
        pieces_.push_back({first, 0});
      pieces_.back().taken |= bit;
    }
    if (n < 3 * i64(pieces_.size())) pieces_.clear();
#endif
  }
  const T* row(i64 i) {
    T* to = this->rows_ + i * this->ld_;
    if (!this->ready_[i]) {
      pick(K + at[i] * ld, to);
      std::fill(to + this->n_, to + this->ld_, T(0));
      this->ready_[i] = 1;
    }
    return to;
  }
  T diag(i64 i) const { return K[at[i] * ld + at[i]]; }

 private:
  void pick(const T* from, T* to) const {
#if defined(__AVX512F__)
    for (const Piece& p : pieces_) {
      if constexpr (sizeof(T) == 4)
        _mm512_storeu_ps(to, _mm512_maskz_compress_ps(__mmask16(p.taken), _mm512_maskz_loadu_ps(__mmask16(p.taken), from + p.first)));
      else
        _mm512_storeu_pd(to, _mm512_maskz_compress_pd(__mmask8(p.taken), _mm512_maskz_loadu_pd(__mmask8(p.taken), from + p.first)));
      to += __builtin_popcount(p.taken);
    }
    if (!pieces_.empty()) return;
#endif
    for (i64 j = 0; j < this->n_; ++j) to[j] = from[at[j]];
  }
  const T* K;
  i64 ld;
  const std::int32_t* at;
#if defined(__AVX512F__)
  struct Piece {
    std::int32_t first;  // of a register's entries
    unsigned taken;      // which of them, one bit for each
  };
  Buffer<Piece> pieces_;
#endif
};
template <class T>
struct Joined : Lazy<T> {
  Joined(const Pair<T>& p, T* rows) : Lazy<T>(p.n + p.m, p.n + p.m, rows), p(p) {}
  const T* row(i64 i) {
    T* to = this->rows_ + i * this->n_;
    if (!this->ready_[i]) {
      if (i < p.n) {
        std::copy_n(p.a + i * p.n, p.n, to);
        std::copy_n(p.c + i * p.ld, p.m, to + p.n);
      } else {
        for (i64 j = 0; j < p.n; ++j) to[j] = p.c[j * p.ld + i - p.n];
        std::copy_n(p.b + (i - p.n) * p.m, p.m, to + p.n);
      }
      this->ready_[i] = 1;
    }
    return to;
  }
  T diag(i64 i) const { return i < p.n ? p.a[i * p.n + i] : p.b[(i - p.n) * p.m + i - p.n]; }
  Pair<T> p;
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

// gradient = base + K (b - start), rows with b = start skipped.
template <class M>
void recompute(M& K, const Variables& v, const double* base, const double* start) {
  std::copy_n(base, v.n, v.gradient);
  for (i64 i = 0; i < v.n; ++i) {
    const double change = v.plus[i] - v.minus[i] - start[i];
    if (change == 0) continue;
    const auto* row = K.row(i);
    for (i64 k = 0; k < v.n; ++k) v.gradient[k] += change * double(row[k]);
  }
}

template <class M>
Steps steps_on(M& K, Variables v, double tol, i64 max_steps, bool exact) {
  Buffer<double> base, start;
  if (exact) {
    base.assign(v.gradient, v.gradient + v.n);
    start.resize(static_cast<std::size_t>(v.n));
    for (i64 i = 0; i < v.n; ++i) start[i] = v.plus[i] - v.minus[i];
  }
  Block<M> block(K, v);
  Steps total;
  for (int round = 0; round < 12; ++round) {
    const Steps steps = block.run(tol, max_steps - total.count);
    total = {total.count + steps.count, steps.violation};
    if (!exact) break;
    recompute(K, v, base.data(), start.data());
    if (steps.count == 0 || total.count >= max_steps) break;
    block.load_gradient();
  }
  return total;
}

template <class T>
Steps solve(const T* K, i64 ld, Variables v, double tol, i64 max_steps, bool exact) {
  Plain<T> plain{K, ld};
  return steps_on(plain, v, tol, max_steps, exact);
}

i64 select(const Variables& v, const std::int32_t* hot, i64 count, const std::int32_t* old, i64 kept, i64 fresh, i64 size,
           std::int32_t* out, double* violation) {
  struct Candidate {
    double value;
    i64 place;  // in hot, whose order decides between equals
  };
  static_assert(sizeof(Candidate) == 16);
  Buffer<char> taken(static_cast<std::size_t>(v.n), char(0));
  i64 found = 0;
  *violation = 0;
  const auto size_of = static_cast<std::size_t>(count);
  Buffer<double> grows(size_of), shrinks(size_of);
  Buffer<Candidate> up(size_of), down(size_of);
  for (int g = 0; g < v.groups; ++g) {
    double low = inf, high = -inf;
    for (i64 k = 0; k < count; ++k) {
      const i64 i = hot[k];
      const Slopes s = slopes(v, g, i);
      grows[k] = v.gradient[i] + s.up;
      shrinks[k] = v.gradient[i] + s.down;
      low = std::min(low, grows[k]);
      high = std::max(high, shrinks[k]);
    }
    if (!(high > low)) continue;
    *violation = std::max(*violation, high - low);
    i64 ups = 0, downs = 0;
    for (i64 k = 0; k < count; ++k) {  // written always, counted if it counts: no branch to guess
      up[ups] = {grows[k], k};
      ups += grows[k] < high;
      down[downs] = {-shrinks[k], k};
      downs += shrinks[k] > low;
    }
    const auto less = [](const Candidate& a, const Candidate& b) {
      return a.value < b.value || (a.value == b.value && a.place < b.place);
    };
    const i64 share = std::max<i64>(1, fresh / (2 * v.groups));
    for (const auto& [side, candidates] : {std::pair{up.data(), ups}, std::pair{down.data(), downs}}) {
      // Twice the share: some are taken by the other side already.
      const i64 some = std::min(2 * share, candidates);
      if (some < candidates) std::nth_element(side, side + some, side + candidates, less);
      std::sort(side, side + some, less);
      i64 quota = share;
      for (i64 k = 0; k < some && quota > 0 && found < size; ++k) {
        const std::int32_t i = hot[side[k].place];
        if (taken[i]) continue;
        taken[i] = 1;
        out[found++] = i;
        --quota;
      }
    }
  }
  for (int pass = 0; pass < 2; ++pass)  // free ones first
    for (i64 k = 0; k < kept && found < size; ++k) {
      const std::int32_t i = old[k];
      if (taken[i]) continue;
      const bool free = (v.plus[i] > 0 && v.plus[i] < v.upper[i]) || (v.minus[i] > 0 && v.minus[i] < v.lower[i]);
      if (free != (pass == 0)) continue;
      taken[i] = 1;
      out[found++] = i;
    }
  return found;
}

// The zero of the increasing function slope(x), by bisection between bounds where it changes sign.
template <class Function>
double bisect(double low, double high, Function slope) {
  for (int k = 0; k < 200; ++k) {
    const double middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) break;
    (slope(middle) > 0 ? high : low) = middle;
  }
  return low + (high - low) / 2;
}

// The sum of `weight` over the points where sign * F + w + b < 0, in lanes: bisection asks for it some sixty times.
double weight_below(const Variables& v, double sign, double b, const double* weight) {
  constexpr i64 L = lanes<double>;
  V<double> sums = {};
  i64 i = 0;
  for (; i + L <= v.n; i += L) {
    const V<double> r = sign * load(v.gradient + i) + load(v.width + i) + b;
    sums += r < 0.0 ? load(weight + i) : V<double>{};
  }
  double total = sum<double>(sums);
  for (; i < v.n; ++i) total += sign * v.gradient[i] + v.width[i] + b < 0 ? weight[i] : 0.0;
  return total;
}

Offsets offsets(const Variables& v) {
  double low = inf, high = -inf, sum_plus = 0, sum_minus = 0;
  for (i64 i = 0; i < v.n; ++i) {
    low = std::min(low, v.gradient[i] - v.width[i]);
    high = std::max(high, v.gradient[i] + v.width[i]);
    sum_plus += v.plus[i];
    sum_minus += v.minus[i];
  }
  Offsets o;
  if (v.groups == 1) {
    o.plus = bisect(-high, -low, [&](double b) {
      return sum_plus - sum_minus - weight_below(v, 1.0, b, v.upper) + weight_below(v, -1.0, -b, v.lower);
    });
    o.minus = -o.plus;
  } else {
    o.plus = bisect(-high, -low, [&](double b) { return sum_plus - weight_below(v, 1.0, b, v.upper); });
    o.minus = bisect(low, high, [&](double b) { return sum_minus - weight_below(v, -1.0, b, v.lower); });
  }
  for (i64 i = 0; i < v.n; ++i) {
    const double p = v.gradient[i] + v.width[i] + o.plus, m = -v.gradient[i] + v.width[i] + o.minus;
    o.gap += p >= 0 ? v.plus[i] * p : (v.plus[i] == v.upper[i] ? 0.0 : (v.plus[i] - v.upper[i]) * p);
    o.gap += m >= 0 ? v.minus[i] * m : (v.minus[i] == v.lower[i] ? 0.0 : (v.minus[i] - v.lower[i]) * m);
  }
  return o;
}

// Growing must not pay below the upper bound, shrinking not above 0 (State.kkt).
double worst_residual(const Variables& v, const Offsets& o) {
  double worst = 0;
  for (i64 i = 0; i < v.n; ++i) {
    const double p = v.gradient[i] + v.width[i] + o.plus, m = -v.gradient[i] + v.width[i] + o.minus;
    if (v.plus[i] < v.upper[i]) worst = std::max(worst, -p);
    if (v.plus[i] > 0) worst = std::max(worst, p);
    if (v.minus[i] < v.lower[i]) worst = std::max(worst, -m);
    if (v.minus[i] > 0) worst = std::max(worst, m);
  }
  return worst;
}

// One problem of a batch: what Decomposition does with the whole matrix, without its ways out of trouble.
template <class M>
Outcome small(M& K, Variables v, const double* linear, double tol, i64 max_steps) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  const i64 n = v.n;
  double steepest = 0, widest = 0, size = 0, largest = 0, total = 0;
  for (i64 i = 0; i < n; ++i) {
    v.gradient[i] = linear[i];
    steepest = std::max(steepest, std::abs(linear[i]));
    widest = std::max(widest, v.width[i]);
    size = std::max(size, std::abs(double(K.diag(i))));
    largest = std::max({largest, v.upper[i], v.lower[i]});
    total += v.plus[i] + v.minus[i];
  }
  if (total > 0) {
    Buffer<double> zero(static_cast<std::size_t>(n), 0.0);
    recompute(K, v, linear, zero.data());
  }
  double target = 1e-3 * (steepest > 0 ? steepest : 1.0);
  steepest += widest;
  Outcome out{};
  for (;;) {
    const Steps steps = steps_on(K, v, target, max_steps - i64(out.steps), true);
    out.steps += double(steps.count);
    const Offsets o = offsets(v);
    double quadratic = 0, length = 0, sum = 0;
    for (i64 i = 0; i < n; ++i) {
      const double b = v.plus[i] - v.minus[i], a = v.plus[i] + v.minus[i];
      quadratic += 0.5 * b * (v.gradient[i] + linear[i]) + v.width[i] * a;
      length += std::abs(b) * std::sqrt(std::abs(double(K.diag(i))));
      sum += a;
    }
    out.dual = -quadratic;
    out.primal = out.dual + o.gap;
    out.rounding = (steepest > 0 ? 2.0 : 64.0) * eps * (length * length + (sum + largest) * steepest);
    out.plus = o.plus;
    out.minus = o.minus;
    const double gap = o.gap - out.rounding, scale = std::max(std::abs(out.primal), std::abs(out.dual));
    out.good = gap <= 0 || gap <= tol * scale;
    const double floor = 2 * eps * (std::sqrt(size) * length + steepest);
    if (out.good || steps.violation > target || target <= floor) break;
    target *= std::max(0.1, std::min(0.5, 0.7 * tol * scale / gap));
  }
  out.kkt = worst_residual(v, {out.plus, out.minus, 0});
  return out;
}

template <class T>
void batch(const T* K, const Batch& b, Variables v, Outcome* out) {
  Buffer<T> block;
  for (i64 p = 0; p < b.count; ++p) {
    const i64 from = b.start[p], n = b.start[p + 1] - from;
    const Variables part{n,  v.gradient + from, v.plus + from, v.minus + from, v.upper + from, v.lower + from,
                         v.width + from, v.groups};
    block.resize(static_cast<std::size_t>(n * Gathered<T>::stride(n)));
    Gathered<T> gathered(K, b.matrix, b.row + from, n, block.data());
    out[p] = small(gathered, part, b.linear + from, b.tol, b.max_steps);
  }
}

template <class T>
Outcome pair(const Pair<T>& p, T* rows, Variables v, const double* linear, double tol, i64 max_steps) {
  Joined<T> joined(p, rows);
  return small(joined, v, linear, tol, max_steps);
}

template <class T>
void add_rows(const T* K, i64 n, const std::int32_t* at, const double* change, i64 count, double* gradient) {
  // Long runs of a few rows at a time, which the processor reads ahead, against gradients in the second-level cache.
  constexpr i64 width = 8192, some = 8;
  for (i64 from = 0; from < n; from += width) {
    const i64 m = std::min(width, n - from);
    double* to = gradient + from;
    i64 i = 0;
    for (; i + some <= count; i += some) {
      const T* row[some];
      double c[some];
      for (i64 k = 0; k < some; ++k) {
        row[k] = K + at[i + k] * n + from;
        c[k] = change[i + k];
      }
      for (i64 j = 0; j < m; ++j) {
        double sums[2] = {to[j], 0.0};
        for (i64 k = 0; k < some; ++k) sums[k % 2] += c[k] * double(row[k][j]);
        to[j] = sums[0] + sums[1];
      }
    }
    for (; i < count; ++i) {
      const T* row = K + at[i] * n + from;
      for (i64 j = 0; j < m; ++j) to[j] += change[i] * double(row[j]);
    }
  }
}

// Memory that is filled for the first time costs a fault for each page.
inline void prefer_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t page = 4096;
  const auto first = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto last = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

template <class T>
Steps part(const T* K, Variables v, const std::int32_t* at, i64 count, double tol, i64 max_steps) {
  const auto size = static_cast<std::size_t>(count);
  Buffer<double> gradient(size), plus(size), minus(size), upper(size), lower(size), width(size), before(size);
  for (i64 i = 0; i < count; ++i) {
    const i64 k = at[i];
    gradient[i] = v.gradient[k];
    plus[i] = v.plus[k];
    minus[i] = v.minus[k];
    upper[i] = v.upper[k];
    lower[i] = v.lower[k];
    width[i] = v.width[k];
    before[i] = plus[i] - minus[i];
  }
  const Variables some{count,        gradient.data(), plus.data(),  minus.data(),
                       upper.data(), lower.data(),    width.data(), v.groups};
  Steps steps;
  if (count == v.n) {  // all of them, in their order
    Plain<T> plain{K, v.n};
    steps = Block<Plain<T>>(plain, some).run(tol, max_steps);
  } else {
    thread_local Buffer<T> rows;  // fresh memory is dear
    const auto room = size * static_cast<std::size_t>(Gathered<T>::stride(count));
    if (rows.size() < room) {
      rows = Buffer<T>();
      rows.resize(room + room / 4);
      prefer_large_pages(rows.data(), rows.size() * sizeof(T));
    }
    Gathered<T> gathered(K, v.n, at, count, rows.data());
    steps = Block<Gathered<T>>(gathered, some).run(tol, max_steps);
  }
  Buffer<std::int32_t> moved;
  Buffer<double> change;
  for (i64 i = 0; i < count; ++i) {
    const double by = plus[i] - minus[i] - before[i];
    v.plus[at[i]] = plus[i];
    v.minus[at[i]] = minus[i];
    if (by == 0) continue;
    moved.push_back(at[i]);
    change.push_back(by);
  }
  add_rows(K, v.n, moved.data(), change.data(), i64(moved.size()), v.gradient);
  return steps;
}

}  // namespace mercer::MERCER_ISA

namespace mercer {
MERCER_TABLES(Smo, solve<T>, batch<T>, pair<T>, part<T>, add_rows<T>)
MERCER_TABLE(Selection, select, offsets)
}  // namespace mercer

// SMO for one instruction set: this file is compiled once per MERCER_ISA with its own flags.
#include "smo_block.hpp"
#include "smo_rows.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mercer::MERCER_ISA {

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
Steps solve(const T* K, i64 ld, Variables v, double tol, i64 max_steps, bool exact, Look* looks, i64 room) {
  Plain<T> plain{K, ld};
  Course course;
  if (looks) {
    course = begin(looks, room);
    v.course = &course;
  }
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

// The zero of the increasing function slope(x), by bisection of an interval at whose ends its sign differs.
template <class Function>
double bisect(Interval in, int halvings, Function slope) {
  for (int k = 0; k < halvings; ++k) {
    const double middle = in.low + (in.high - in.low) / 2;
    if (!(middle > in.low && middle < in.high)) break;
    (slope(middle) > 0 ? in.high : in.low) = middle;
  }
  return in.low + (in.high - in.low) / 2;
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

// What a variable adds to the gap, computed without a branch: the signs of slopes cannot be predicted.
inline double gap_of(double value, double bound, double slope) {
  const double below = value * slope, above = (value - bound) * slope;
  return slope >= 0 ? below : value == bound ? 0.0 : above;
}

double gap_at(const Variables& v, double plus, double minus) {
  double gap = 0;
  for (i64 i = 0; i < v.n; ++i) {
    gap += gap_of(v.plus[i], v.upper[i], v.gradient[i] + v.width[i] + plus);
    gap += gap_of(v.minus[i], v.lower[i], -v.gradient[i] + v.width[i] + minus);
  }
  return gap;
}

Offsets offsets(const Variables& v, Interval plus, Interval minus, int halvings) {
  double sum_plus = 0, sum_minus = 0;
  for (i64 i = 0; i < v.n; ++i) {
    sum_plus += v.plus[i];
    sum_minus += v.minus[i];
  }
  Offsets o;
  if (v.groups == 1) {
    o.plus = bisect(plus, halvings, [&](double b) {
      return sum_plus - sum_minus - weight_below(v, 1.0, b, v.upper) + weight_below(v, -1.0, -b, v.lower);
    });
    o.minus = -o.plus;
  } else {
    o.plus = bisect(plus, halvings, [&](double b) { return sum_plus - weight_below(v, 1.0, b, v.upper); });
    o.minus = bisect(minus, halvings, [&](double b) { return sum_minus - weight_below(v, -1.0, b, v.lower); });
  }
  o.gap = gap_at(v, o.plus, o.minus);
  return o;
}

Offsets exact_offsets(const Variables& v) {
  double low = inf, high = -inf;
  for (i64 i = 0; i < v.n; ++i) {
    low = std::min(low, v.gradient[i] - v.width[i]);
    high = std::max(high, v.gradient[i] + v.width[i]);
  }
  return offsets(v, {-high, -low}, {low, high}, 200);  // it ends before, at neighbouring numbers
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
  const auto dual = [&] {
    double quadratic = 0;
    for (i64 i = 0; i < n; ++i)
      quadratic += 0.5 * (v.plus[i] - v.minus[i]) * (v.gradient[i] + linear[i]) + v.width[i] * (v.plus[i] + v.minus[i]);
    return -quadratic;
  };
  if (total > 0) {
    Buffer<double> zero(static_cast<std::size_t>(n), 0.0);
    recompute(K, v, linear, zero.data());
    if (v.course) v.course->dual = dual();
  }
  double target = 1e-3 * (steepest > 0 ? steepest : 1.0);
  steepest += widest;
  Outcome out{};
  for (;;) {
    const Steps steps = steps_on(K, v, target, max_steps - i64(out.steps), true);
    out.steps += double(steps.count);
    const Offsets o = exact_offsets(v);
    double length = 0, sum = 0;
    for (i64 i = 0; i < n; ++i) {
      const double b = v.plus[i] - v.minus[i], a = v.plus[i] + v.minus[i];
      length += std::abs(b) * std::sqrt(std::abs(double(K.diag(i))));
      sum += a;
    }
    out.dual = dual();
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
    Variables part{n,  v.gradient + from, v.plus + from, v.minus + from, v.upper + from, v.lower + from,
                         v.width + from, v.groups};
    block.resize(static_cast<std::size_t>(n * Gathered<T>::stride(n)));
    Gathered<T> gathered(K, b.matrix, b.row + from, n, block.data());
    Course course;
    if (b.looks) {
      course = begin(b.looks + p * b.room, b.room);
      part.course = &course;
    }
    out[p] = small(gathered, part, b.linear + from, b.tol, b.max_steps);
  }
}

template <class T>
Outcome pair(const Pair<T>& p, T* rows, Variables v, const double* linear, double tol, i64 max_steps, Look* looks,
             i64 room) {
  Joined<T> joined(p, rows);
  Course course;
  if (looks) {
    course = begin(looks, room);
    v.course = &course;
  }
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
MERCER_TABLE(Selection, select, exact_offsets)
}  // namespace mercer

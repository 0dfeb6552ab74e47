// The formula of a kernel, applied to one strip: statistics first, then one instruction after the other.
#pragma once

#include "coarse.hpp"
#include "inner.hpp"
#include "sparse.hpp"
#include "terms.hpp"

namespace mercer::MERCER_ISA {

template <class T>
class Strip {  // scratch of one thread: the registers of the program, each max_rows x strip_cols
 public:
  explicit Strip(const Job<T>& job)
      : job_(job),
        values_(static_cast<std::size_t>(job.program.registers * size_)),
        left_(job.operands.size()),
        sparse_(job.operands.size()) {
    // How large the first operand of each instruction can be, where it is a distance of points that lie in a ball.
    Buffer<double> largest(static_cast<std::size_t>(job.program.registers), unknown);
    for (const Instruction& i : job.program.code) {
      reach_.push_back(i.op == Op::stat || i.op == Op::row || i.op == Op::col ? unknown : largest[i.a]);
      const bool ball = i.op == Op::stat && job.operands[i.a].reach > 0;
      largest[i.dst] = ball ? job.operands[i.a].reach : unknown;
    }
  }

  // Columns of a strip: a wide one has fewer beginnings and ends, of which sparse points have most, but all registers
  // should stay in the cache.
  i64 width() const {
    bool wide = job_.program.registers == 1;
    for (const Operand<T>& o : job_.operands) wide |= o.zc.start != nullptr;
    return wide ? strip_cols<T> : strip_cols<T> / 2;
  }

  // Make ready the rows r0..r1 (at most a band) that `evaluate` will be asked for.
  void enter(i64 r0, i64 r1) {
    band_ = r0;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      const Operand<T>& o = job_.operands[i];
      if (o.sparse && (o.kind == Stat::dot || o.x_squares)) sparse_[i].enter(o, r0, r1);
      if (o.sparse || o.thin) continue;
      left_[i].resize(static_cast<std::size_t>(band_rows * o.d));
      interleave(o, r0, r1, left_[i].data());
    }
  }

  // Kernel values of rows r..r+rows against columns c..c+cols (c and cols multiples of the panel).
  const T* evaluate(i64 r, int rows, i64 c, i64 cols) {
    const std::vector<Instruction>& code = job_.program.code;
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (i + 1 < code.size() && decays(code[i], code[i + 1])) {
        const Operand<T>& o = job_.operands[code[i].a];
        ++i;
        strip_products<T>(o, left(code[i - 1].a, r), r, rows, c, cols, reg(code[i].dst),
                       Decay<T>{PowerOfTwo<T>(code[i].c, code[i].e)});
      } else if (Raised power; i + 1 < code.size() && raises(code[i], code[i + 1], power)) {
        const Operand<T>& o = job_.operands[code[i].a];
        strip_coarse<T>(o, left(code[i].a, r), r, rows, c, cols, reg(code[i].dst), power);
        ++i;
      } else if (i + 1 < code.size() && one_product(code[i], code[i + 1])) {
        const bool first = job_.operands[code[i].a].kind == Stat::sqdist;
        const Instruction &apart = code[first ? i : i + 1], &inner = code[first ? i + 1 : i];
        const Operand<T>& o = job_.operands[apart.a];
        if (o.sparse) sparse_[apart.a].strip(o, r, rows, c, cols, job_.m, reg(inner.dst), reg(apart.dst));
        else strip_products<T>(o, left(apart.a, r), r, rows, c, cols, reg(apart.dst), Both<T>{(inner.dst - apart.dst) * size_});
        ++i;
      } else if (i + 1 < code.size() && one_sum(code[i], code[i + 1])) {
        add_two(i, rows * cols);
        ++i;
      } else {
        step(code[i], reach_[i], r, rows, c, cols);
      }
    }
    return reg(job_.program.result);
  }

 private:
  T* reg(int k) { return values_.data() + k * size_; }
  const T* left(int which, i64 r) const { return left_[which].data() + (r - band_) * job_.operands[which].d; }

  // Whether the second instruction makes an exponential of the first one's distances, which nothing else reads.
  bool decays(const Instruction& first, const Instruction& second) const {
    if (first.op != Op::stat || second.op != Op::exp || second.a != first.dst || second.dst != first.dst) return false;
    const Operand<T>& o = job_.operands[first.a];
    return o.kind == Stat::sqdist && o.x_norms &&
           PowerOfTwo<T>::covers(std::abs(second.c) * o.reach + std::abs(second.e));
  }

  // Whether the second instruction makes a power of the first one's inner products, of coarse points.
  bool raises(const Instruction& first, const Instruction& second, Raised& power) const {
    if (first.op != Op::stat || second.a != first.dst || second.dst != first.dst) return false;
    return job_.operands[first.a].x_unit && power.takes(second);
  }

  // Whether of two statistics of the same points one is their inner products and the other one is made of those.
  bool one_product(const Instruction& first, const Instruction& second) const {
    if (first.op != Op::stat || second.op != Op::stat || first.dst == second.dst) return false;
    const Operand<T>&o = job_.operands[first.a], &p = job_.operands[second.a];
    return o.sparse == p.sparse && o.x == p.x && o.z == p.z && o.xs.data == p.xs.data && o.zs.data == p.zs.data &&
           o.d == p.d && ((o.kind == Stat::dot && p.reach > 0) || (p.kind == Stat::dot && o.reach > 0));
  }

  // Two terms of one sum in one pass: a division or a root in one of them waits while the other one multiplies.
  void add_two(std::size_t at, i64 size) {
    const Instruction &first = job_.program.code[at], &second = job_.program.code[at + 1];
    T* sum = reg(first.dst);
    with_term<T>(first, reach_[at], [&](auto f) {
      with_term<T>(second, reach_[at + 1], [&](auto g) { add_terms(sum, reg(first.b), reg(first.a), reg(second.a), size, f, g); });
    });
  }

  void step(const Instruction& i, double reach, i64 r, int rows, i64 c, i64 cols) {
    using U = V<T>;
    const i64 size = rows * cols;
    T* dst = reg(i.dst);
    const T* b = i.op == Op::outer ? nullptr : reg(i.b);
    // Adding -0 rather than 0 keeps the sign of a zero, which atan2 looks at.
    const T k = static_cast<T>(i.c), e = i.e == 0 ? T(-0.0) : static_cast<T>(i.e), p = static_cast<T>(i.p);
    switch (i.op) {
      case Op::stat: return statistic(i.a, r, rows, c, cols, dst);
      case Op::row:
        for (int q = 0; q < rows; ++q) std::fill_n(dst + q * cols, cols, job_.rows[i.a][r + q]);
        return;
      case Op::col: {
        const i64 have = std::min(cols, job_.m - c);
        for (int q = 0; q < rows; ++q) {
          std::copy_n(job_.cols[i.a] + c, have, dst + q * cols);
          std::fill(dst + q * cols + have, dst + (q + 1) * cols, T(1));
        }
        return;
      }
      default: break;
    }
    const T* a = reg(i.a);
    const double most = std::abs(i.c) * reach + std::abs(i.e);
    switch (i.op) {
      case Op::add: return binary(dst, a, b, size, [=](U x, U y) { return (x * k + e) + y; });
      case Op::sub: return binary(dst, a, b, size, [=](U x, U y) { return (x * k + e) - y; });
      case Op::mul: return binary(dst, a, b, size, [=](U x, U y) { return (x * k + e) * y; });
      case Op::div: return binary(dst, a, b, size, [=](U x, U y) { return (x * k + e) / y; });
      case Op::min: return binary(dst, a, b, size, [=](U x, U y) { return min<T>(x * k + e, y); });
      case Op::max: return binary(dst, a, b, size, [=](U x, U y) { return max<T>(x * k + e, y); });
      case Op::atan2: return binary(dst, a, b, size, [=](U x, U y) { return atan2<T>(x * k + e, y); });
      case Op::affine: return unary(dst, a, size, [=](U x) { return x * k + e; });
      case Op::exp:
        if (PowerOfTwo<T>::covers(most)) return unary(dst, a, size, PowerOfTwo<T>(i.c, i.e));
        return unary(dst, a, size, Exponent<T>(i.c, i.e));
      case Op::log: return unary(dst, a, size, [=](U x) { return log<T>(x * k + e); });
      case Op::log1p: return unary(dst, a, size, [=](U x) { return log1p<T>(x * k + e); });
      case Op::sqrt: return unary(dst, a, size, [=](U x) { return sqrt<T>(x * k + e); });
      case Op::tanh: return unary(dst, a, size, [=](U x) { return tanh<T>(x * k + e); });
      case Op::iszero: return unary(dst, a, size, [=](U x) { return x * k + e == T(0) ? splat<T>(T(1)) : U{}; });
      case Op::rdiv: return unary(dst, a, size, [=](U x) { return p / (x * k + e); });
      case Op::lower: return unary(dst, a, size, [=](U x) { return max<T>(x * k + e, splat<T>(p)); });
      case Op::upper: return unary(dst, a, size, [=](U x) { return min<T>(x * k + e, splat<T>(p)); });
      case Op::damp:
        if (DampedNear<T>::covers(most)) return unary(dst, a, size, DampedNear<T>(i.c, i.e, i.p));
        return unary(dst, a, size, Damped<T>(i.c, i.e, i.p));
      case Op::powi: return power(dst, a, size, k, e, static_cast<int>(i.p));
      case Op::exp_add:
      case Op::powi_add:
      case Op::damp_add:
        if (is_term(i)) return with_term<T>(i, reach, [&](auto f) { binary(dst, a, b, size, [=](U x, U y) { return f(x) + y; }); });
        return binary(dst, a, b, size, [=, n = static_cast<int>(i.p)](U x, U y) { return powi<T>(x * k + e, n) + y; });
      case Op::outer: return outer(dst, a, i, r, rows, c, cols, k, e);
      case Op::powc:
        return unary(dst, a, size, [=, f = Exponent<T>(i.p, 0)](U x) { return f(log<T>(x * k + e)); });
      default: return;
    }
  }

  void outer(T* dst, const T* a, const Instruction& i, i64 r, int rows, i64 c, i64 cols, T k, T e) {
    const T* col = job_.cols[static_cast<std::size_t>(i.p)] + c;
    const i64 have = std::min(cols, job_.m - c) / lanes<T> * lanes<T>;
    for (int q = 0; q < rows; ++q) {
      const T row = job_.rows[i.b][r + q];
      const i64 at = q * cols;
      for (i64 j = 0; j < have; j += lanes<T>) store(dst + at + j, (load(a + at + j) * k + e) + (load(col + j) + row));
      for (i64 j = have; j < cols; ++j) dst[at + j] = (a[at + j] * k + e) + ((c + j < job_.m ? col[j] : T(1)) + row);
    }
  }

  static void power(T* dst, const T* a, i64 size, T k, T e, int n) {
    using U = V<T>;
    switch (n) {
      case -2: return unary(dst, a, size, [=](U x) { x = x * k + e; return T(1) / (x * x); });
      case -1: return unary(dst, a, size, [=](U x) { return T(1) / (x * k + e); });
      case 2: return unary(dst, a, size, [=](U x) { x = x * k + e; return x * x; });
      case 3: return unary(dst, a, size, [=](U x) { x = x * k + e; return x * x * x; });
      case 4: return unary(dst, a, size, [=](U x) { x = x * k + e; x *= x; return x * x; });
      default: return unary(dst, a, size, [=](U x) { return powi<T>(x * k + e, n); });
    }
  }

  // exp makes a relative error of an absolute one: where its argument is -20 or less, a float32 sum that is off by
  // a few units in the last place would cost a kernel value its fifth digit. Those few are summed again in double.
  template <Stat S>
  static void refine(const Operand<float>& o, const float* x, int rows, i64 c, i64 cols, float* values) {
    if (!above(values, rows * cols, o.low)) return;
    for (int i = 0, size; i < rows; i += size, x += size * o.d) {
      size = group(rows - i);
      for (int q = 0; q < size; ++q)
        for (i64 p = 0; p < cols; p += panel<float>) {
          float* v = values + (i + q) * cols + p;
          if (above(v, panel<float>, o.low)) micro_double<S>(o, x + q, size, o.z + (c + p) * o.d, v);
        }
    }
  }

  static bool above(const float* values, i64 size, float low) {
    V<float> top = load(values);
    for (i64 i = lanes<float>; i < size; i += lanes<float>) top = max<float>(top, load(values + i));
    bool any = false;
    for (int i = 0; i < lanes<float>; ++i) any |= top[i] > low;
    return any;
  }

  void statistic(int which, i64 r, int rows, i64 c, i64 cols, T* dst) {
    const Operand<T>& o = job_.operands[which];
    const T* x = left(which, r);
    if (o.x_unit) return strip_coarse<T>(o, x, r, rows, c, cols, dst, Raised{});
    if (o.x_norms) return strip_products<T>(o, x, r, rows, c, cols, dst, Apart<T>{});
    if (o.x_squares) return sparse_[which].strip(o, r, rows, c, cols, job_.m, nullptr, dst);
    if (o.sparse && o.kind == Stat::dot) return sparse_[which].strip(o, r, rows, c, cols, job_.m, dst, nullptr);
    if (o.sparse) return merge(o, r, rows, c, cols, dst);
    measure(o, x, r, rows, c, cols, dst);
    if constexpr (sizeof(T) == 4) {
      if (o.high > 0) {
        if (o.kind == Stat::sqdist) refine<Stat::sqdist>(o, x, rows, c, cols, dst);
        if (o.kind == Stat::l1) refine<Stat::l1>(o, x, rows, c, cols, dst);
      }
    }
  }

  void measure(const Operand<T>& o, const T* x, i64 r, int rows, i64 c, i64 cols, T* dst) {
    switch (o.kind) {
      case Stat::dot: return strip_products<T>(o, x, r, rows, c, cols, dst, AsIs<T>{});
      case Stat::sqdist: return strip_stat<T, Stat::sqdist>(o, x, rows, c, cols, dst);
      case Stat::l1: return strip_stat<T, Stat::l1>(o, x, rows, c, cols, dst);
      case Stat::chi2: return strip_stat<T, Stat::chi2>(o, x, rows, c, cols, dst);
      case Stat::minimum: return strip_stat<T, Stat::minimum>(o, x, rows, c, cols, dst);
      case Stat::sqsum: return strip_stat<T, Stat::sqsum>(o, x, rows, c, cols, dst);
    }
  }

  void merge(const Operand<T>& o, i64 r, int rows, i64 c, i64 cols, T* dst) {
    switch (o.kind) {
      case Stat::sqdist: return strip_merged<T, Stat::sqdist>(o, r, rows, c, cols, job_.m, dst);
      case Stat::l1: return strip_merged<T, Stat::l1>(o, r, rows, c, cols, job_.m, dst);
      case Stat::chi2: return strip_merged<T, Stat::chi2>(o, r, rows, c, cols, job_.m, dst);
      case Stat::minimum: return strip_merged<T, Stat::minimum>(o, r, rows, c, cols, job_.m, dst);
      case Stat::sqsum: return strip_merged<T, Stat::sqsum>(o, r, rows, c, cols, job_.m, dst);
      case Stat::dot: return;
    }
  }

  static constexpr i64 size_ = max_rows * strip_cols<T>;
  static constexpr double unknown = std::numeric_limits<double>::infinity();
  const Job<T>& job_;
  Buffer<T> values_;
  Buffer<double> reach_;
  std::vector<Buffer<T>> left_;  // the band's rows for each operand, interleaved
  std::vector<SparseProducts<T>> sparse_;
  i64 band_ = 0;
};

}  // namespace mercer::MERCER_ISA

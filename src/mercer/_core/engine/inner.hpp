// Inner products at the rate of a matrix product, and what is made of them before they leave the registers: squared
// distances |x|^2 + |z|^2 - 2 <x, z>, where the caller has found that their rounding does no harm.
#pragma once

#include "statistics.hpp"

namespace mercer::MERCER_ISA {

// Sums run in chunks of about chunk<T> coordinates, of even length so that none is left with a few.
template <class T>
i64 even_chunk(i64 d) {
  const i64 parts = std::max<i64>(1, (d + chunk<T> / 2) / chunk<T>);
  return (d + parts - 1) / parts;
}

// Squared norms, summed in the order in which inner products are, `step` coordinates at a time: for equal points <x, z>
// is |x|^2 to the last bit, so that their distance is exactly 0.
template <class T>
void norms(const T* x, i64 n, i64 d, i64 step, T* out) {
  constexpr int R = 8;  // rows side by side hide the latency of each one's chain
  for (i64 i = 0; i < n; i += R) {
    const int rows = static_cast<int>(std::min<i64>(R, n - i));
    T total[R] = {};
    for (i64 k0 = 0; k0 < d; k0 += step) {
      T sum[R] = {};
      const i64 k1 = std::min(d, k0 + step);
      for (int r = 0; r < rows; ++r) {
        const T* row = x + (i + r) * d;
        for (i64 k = k0; k < k1; ++k) sum[r] = multiply_add<T>(row[k], row[k], sum[r]);
        total[r] += sum[r];
      }
    }
    std::copy_n(total, rows, out + i);
  }
}

// What becomes of an inner product: it is written as it is,
template <class T>
struct AsIs {
  static constexpr bool with_norms = false;
  void operator()(V<T> dot, T, V<T>, T* to) const { store(to, dot); }
};
// as a squared distance,
template <class T>
struct Apart {
  static constexpr bool with_norms = true;
  static V<T> distance(V<T> dot, T x, V<T> z) {
    return positive<T>(multiply_add_each<T>(dot, splat<T>(T(-2)), z + x));
  }
  void operator()(V<T> dot, T x, V<T> z, T* to) const { store(to, distance(dot, x, z)); }
};
// as both, the inner product `ahead` of the distance,
template <class T>
struct Both {
  static constexpr bool with_norms = true;
  i64 ahead;
  void operator()(V<T> dot, T x, V<T> z, T* to) const {
    store(to, Apart<T>::distance(dot, x, z));
    store(to + ahead, dot);
  }
};
// or as the exponential of a squared distance.
template <class T>
struct Decay {
  static constexpr bool with_norms = true;
  PowerOfTwo<T> power;
  void operator()(V<T> dot, T x, V<T> z, T* to) const { store(to, power(Apart<T>::distance(dot, x, z))); }
};

// R rows (interleaved: x[k * R + r]) against one packed panel.
template <class T, int R, class F>
inline void micro_inner(const T* x, i64 d, const T* z, const T* x_norms, const T* z_norms, T* out, i64 ld,
                        const F& finish) {
  constexpr i64 P = panel<T>;
  constexpr int L = lanes<T>;
  const i64 step = even_chunk<T>(d);
  V<T> sum[R][2] = {};
  const auto add_products = [&](i64 k0, i64 k1) {
    for (i64 k = k0; k < k1; ++k) {
      const V<T> z0 = load(z + k * P), z1 = load(z + k * P + L);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V<T> a = splat<T>(x[k * R + r]);
        sum[r][0] = multiply_add_each<T>(a, z0, sum[r][0]);
        sum[r][1] = multiply_add_each<T>(a, z1, sum[r][1]);
      }
    }
  };
  add_products(0, step);
  for (i64 k = step; k < d; k += step) {
    V<T> before[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      for (int h = 0; h < 2; ++h) before[r][h] = sum[r][h], sum[r][h] = V<T>{};
    add_products(k, std::min(d, k + step));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      for (int h = 0; h < 2; ++h) sum[r][h] += before[r][h];
  }
  V<T> zn[2] = {};
  if constexpr (F::with_norms) zn[0] = load(z_norms), zn[1] = load(z_norms + L);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
    for (int h = 0; h < 2; ++h)
      finish(sum[r][h], F::with_norms ? x_norms[r] : T(0), zn[h], out + r * ld + h * L);
}

template <class T, int R, class F>
void group_inner(const Operand<T>& o, const T* x, i64 r, i64 c, i64 cols, T* out, const F& finish) {
  for (i64 p = 0; p < cols; p += panel<T>)
    micro_inner<T, R>(x, o.d, o.z + (c + p) * o.d, F::with_norms ? o.x_norms + r : nullptr,
                      F::with_norms ? o.z_norms + c + p : nullptr, out + p, cols, finish);
}

// x: the strip's rows r.. as `interleave` left them.
template <class T, class F>
void strip_inner(const Operand<T>& o, const T* x, i64 r, int rows, i64 c, i64 cols, T* out, const F& finish) {
  for (int i = 0, size; i < rows; i += size, x += size * o.d, out += size * cols) {
    size = group(rows - i);
    if (size == strip_rows) group_inner<T, strip_rows>(o, x, r + i, c, cols, out, finish);
    else if (size == 4) group_inner<T, 4>(o, x, r + i, c, cols, out, finish);
    else if (size == 2) group_inner<T, 2>(o, x, r + i, c, cols, out, finish);
    else group_inner<T, 1>(o, x, r + i, c, cols, out, finish);
  }
}

// Rows with few nonzeros against Q packed panels: only those features are visited, in one sum from the first to the
// last. Whichever point of a pair is on the left, the terms left out are zeros and the others come in the same order, so
// that the sum is the same.
template <class T, int Q, class F>
inline void micro_thin(const Operand<T>& o, i64 r, i64 c, T* out, const F& finish) {
  constexpr i64 P = panel<T>;
  constexpr int L = lanes<T>;
  const T* z = o.z + c * o.d;
  V<T> sum[Q][2] = {};
  for (i64 a = o.xs.start[r]; a < o.xs.start[r + 1]; ++a) {
    const V<T> x = splat<T>(o.xs.data[a]);
    const T* at = z + o.xs.index[a] * P;
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q, at += P * o.d) {
      sum[q][0] = multiply_add_each<T>(x, load(at), sum[q][0]);
      sum[q][1] = multiply_add_each<T>(x, load(at + L), sum[q][1]);
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < Q; ++q)
    for (int h = 0; h < 2; ++h) {
      const i64 j = q * P + h * L;
      const V<T> zn = F::with_norms ? load(o.z_norms + c + j) : V<T>{};
      finish(sum[q][h], F::with_norms ? o.x_norms[r] : T(0), zn, out + j);
    }
}

template <class T, class F>
void strip_thin(const Operand<T>& o, i64 r, int rows, i64 c, i64 cols, T* out, const F& finish) {
  constexpr int Q = strip_rows / 2;  // as many sums at once as there are registers for
  i64 p = 0;
  for (; p + Q * panel<T> <= cols; p += Q * panel<T>)
    for (int i = 0; i < rows; ++i) micro_thin<T, Q>(o, r + i, c + p, out + i * cols + p, finish);
  for (; p < cols; p += panel<T>)
    for (int i = 0; i < rows; ++i) micro_thin<T, 1>(o, r + i, c + p, out + i * cols + p, finish);
}

// Either way: x is where `interleave` left the strip's rows, if it did.
template <class T, class F>
void strip_products(const Operand<T>& o, const T* x, i64 r, int rows, i64 c, i64 cols, T* out, const F& finish) {
  if (o.thin) strip_thin<T>(o, r, rows, c, cols, out, finish);
  else strip_inner<T>(o, x, r, rows, c, cols, out, finish);
}

}  // namespace mercer::MERCER_ISA

// Sums over coordinates for a strip of a few rows against a few hundred columns.
#pragma once

#include <algorithm>
#include <new>
#include <vector>

#include "engine.hpp"
#include "math.hpp"

namespace mercer::MERCER_ISA {

// A vector whose type is this instruction set's own, so that the linker cannot merge its functions with
// copies compiled for another; aligned for whole registers.
template <class T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U>
  Aligned(const Aligned<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
  template <class U>
  void construct(U* p) { ::new (static_cast<void*>(p)) U; }  // scratch is written before it is read
  template <class U, class A>
  void construct(U* p, const A& value) { ::new (static_cast<void*>(p)) U(value); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
  bool operator==(const Aligned&) const { return true; }
};
template <class T>
using Buffer = std::vector<T, Aligned<T>>;

// A strip is at most 8 rows by strip_cols columns (fewer for a long program, see Strip::width); a band stacks strips so
// that mirrored writes are long.
constexpr int max_rows = 8;
constexpr i64 band_rows = 128;
template <class T>
constexpr i64 panel = 2 * lanes<T>;
template <class T>
constexpr i64 strip_cols = 2048 / static_cast<i64>(sizeof(T));
// Sums run in chunks of this many coordinates, each begun at zero: the rounding error of a squared distance grows
// with the chunk and the number of chunks, not with their product.
template <class T>
constexpr i64 chunk = sizeof(T) == 4 ? 16 : 32;
// Bytes of a matrix that no cache holds.
constexpr i64 large = i64(16) << 20;

template <class T>
void pack(const T* z, i64 m, i64 d, T* out) {
  constexpr i64 P = panel<T>;
  for (i64 p = 0; p < m; p += P, out += P * d)
    for (i64 k = 0; k < d; ++k)
      for (i64 c = 0; c < P; ++c) out[k * P + c] = p + c < m ? z[(p + c) * d + k] : T(0);
}

template <class T, Stat S>
inline V<T> accumulate(V<T> sum, T x, V<T> z, [[maybe_unused]] T w) {
  if constexpr (S == Stat::minimum) {
    const V<T> a = splat<T>(x);
    return sum + min<T>(a, z);
  }
  if constexpr (S == Stat::sqsum) {
    const V<T> t = x + z;
    return sum + t * t;
  }
  const V<T> t = x - z;
  if constexpr (S == Stat::sqdist) return sum + t * t;
  if constexpr (S == Stat::l1) return sum + abs<T>(t);
  if constexpr (S == Stat::chi2) {
    const V<T> s = x + z;
    return sum + (s > T(0) ? t * (t / s) : V<T>{});
  }
  return sum;
}
template <class T, Stat S>
inline V<T> accumulate_weighted(V<T> sum, T x, V<T> z, T w) {
  const V<T> t = (x - z) * w;
  if constexpr (S == Stat::sqdist) return sum + t * t;
  return sum + abs<T>(t);
}

// R rows (interleaved: x[k * R + r]) against one packed panel.
template <class T, Stat S, int R, bool W>
inline void micro(const T* x, i64 d, const T* z, const T* weight, T* out, i64 ld) {
  constexpr i64 P = panel<T>;
  constexpr int L = lanes<T>;
  V<T> total[R][2] = {};
  for (i64 k0 = 0; k0 < d; k0 += chunk<T>) {
    V<T> sum[R][2] = {};
    const i64 k1 = std::min(d, k0 + chunk<T>);
    for (i64 k = k0; k < k1; ++k) {
      const V<T> z0 = load(z + k * P), z1 = load(z + k * P + L);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const T a = x[k * R + r];
        if constexpr (W) {
          sum[r][0] = accumulate_weighted<T, S>(sum[r][0], a, z0, weight[k]);
          sum[r][1] = accumulate_weighted<T, S>(sum[r][1], a, z1, weight[k]);
        } else {
          sum[r][0] = accumulate<T, S>(sum[r][0], a, z0, T(1));
          sum[r][1] = accumulate<T, S>(sum[r][1], a, z1, T(1));
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      total[r][0] += sum[r][0];
      total[r][1] += sum[r][1];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    store(out + r * ld, total[r][0]);
    store(out + r * ld + L, total[r][1]);
  }
}

// Rows are taken in groups of strip_rows, and what is left of a strip in groups of 4, 2 and 1.
constexpr int group(int left) { return left >= strip_rows ? strip_rows : left >= 4 ? 4 : left >= 2 ? 2 : 1; }

// The left points r0..r1, interleaved within the groups of each strip.
template <class T>
void interleave(const Operand<T>& o, i64 r0, i64 r1, T* to) {
  for (i64 strip = r0; strip < r1; strip += max_rows) {
    const int rows = static_cast<int>(std::min<i64>(max_rows, r1 - strip));
    for (int i = 0, size; i < rows; i += size) {
      size = group(rows - i);
      const T* x = o.x + (strip + i) * o.d;
      for (i64 k = 0; k < o.d; ++k)
        for (int r = 0; r < size; ++r) *to++ = x[r * o.d + k];
    }
  }
}

template <class T, Stat S, int R, bool W>
void group_dense(const Operand<T>& o, const T* x, const T* z, i64 cols, T* out) {
  for (i64 p = 0; p < cols; p += panel<T>) micro<T, S, R, W>(x, o.d, z + p * o.d, o.weight, out + p, cols);
}

template <class T, Stat S, bool W>
void strip_dense(const Operand<T>& o, const T* x, int rows, i64 c, i64 cols, T* out) {
  const T* z = o.z + c * o.d;
  for (int i = 0, size; i < rows; i += size, x += size * o.d, out += size * cols) {
    size = group(rows - i);
    if (size == strip_rows) group_dense<T, S, strip_rows, W>(o, x, z, cols, out);
    else if (size == 4) group_dense<T, S, 4, W>(o, x, z, cols, out);
    else if (size == 2) group_dense<T, S, 2, W>(o, x, z, cols, out);
    else group_dense<T, S, 1, W>(o, x, z, cols, out);
  }
}

// The same sums in double for one row and one panel of float32 points, kept where the float32 sum is in the window.
template <Stat S>
inline void micro_double(const Operand<float>& o, const float* x, i64 stride, const float* z, float* out) {
  constexpr int L = lanes<double>, parts = static_cast<int>(panel<float>) / L;
  typedef float narrow __attribute__((vector_size(register_bytes / 2)));
  V<double> sum[parts] = {};
  for (i64 k = 0; k < o.d; ++k) {
    const double a = x[k * stride], w = o.weight ? o.weight[k] : 1.0;
    for (int i = 0; i < parts; ++i) {
      narrow b;
      std::memcpy(&b, z + k * panel<float> + i * L, sizeof b);
      const V<double> t = (a - __builtin_convertvector(b, V<double>)) * w;
      sum[i] += S == Stat::l1 ? abs<double>(t) : t * t;
    }
  }
  for (int i = 0; i < parts; ++i) {
    narrow before;
    std::memcpy(&before, out + i * L, sizeof before);
    const narrow after = __builtin_convertvector(sum[i], narrow);
    const narrow chosen = (before > o.low) & (before < o.high) ? after : before;
    std::memcpy(out + i * L, &chosen, sizeof chosen);
  }
}

// x: the strip's rows as `interleave` left them. Inner products have ways of their own.
template <class T, Stat S>
void strip_stat(const Operand<T>& o, const T* x, int rows, i64 c, i64 cols, T* out) {
  if constexpr (S == Stat::sqdist || S == Stat::l1) {
    if (o.weight) return strip_dense<T, S, true>(o, x, rows, c, cols, out);
  }
  strip_dense<T, S, false>(o, x, rows, c, cols, out);
}

}  // namespace mercer::MERCER_ISA

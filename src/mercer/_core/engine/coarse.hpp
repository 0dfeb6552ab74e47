// Inner products of points rounded to whole numbers of 16 bits, at twice the rate of float32: one instruction (VNNI)
// multiplies and adds 32 of them. What is summed is exact, so that the values are those of points moved a little.
#pragma once

#include "inner.hpp"

namespace mercer::MERCER_ISA {

// What becomes of an inner product: (factor times it + shift), to the third power or not, squared so many times.
struct Raised {
  float factor = 1, shift = -0.0f;
  bool cubed = false;
  int squarings = 0;

  // Whether this is what an instruction makes of its first operand; if so, it is taken over.
  bool takes(const Instruction& i) {
    int power = i.op == Op::affine ? 1 : i.op == Op::powi ? static_cast<int>(i.p) : 0;
    if (power <= 0) return false;
    for (squarings = 0; power % 2 == 0; power /= 2) ++squarings;
    cubed = power == 3;
    factor = static_cast<float>(i.c);
    if (i.e != 0) shift = static_cast<float>(i.e);
    return power == 1 || cubed;
  }
};

#if defined(__AVX512F__)
inline __m512i words(const float* p) {
  __m512i v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline __m512i word_everywhere(const float* p) {
  std::int32_t word;
  std::memcpy(&word, p, sizeof word);
  return _mm512_set1_epi32(word);
}

// R rows (interleaved: x[k * R + r]) against the packed panels of columns c .. c + cols. Each number of x and z is a pair
// of whole ones.
template <int R>
__attribute__((target("avx512vnni"))) void group_coarse(const Operand<float>& o, const float* x, i64 r, i64 c,
                                                        i64 cols, float* out, const Raised& power) {
  constexpr i64 P = panel<float>;
  constexpr int L = lanes<float>;
  for (i64 p = 0; p < cols; p += P) {
    const float* z = o.z + (c + p) * o.d;
    __m512i sum[R][2];
    for (int q = 0; q < R; ++q) sum[q][0] = sum[q][1] = _mm512_setzero_si512();
    for (i64 k = 0; k < o.d; ++k) {
      const __m512i z0 = words(z + k * P), z1 = words(z + k * P + L);
#pragma GCC unroll 8
      for (int q = 0; q < R; ++q) {
        __m512i a = word_everywhere(x + k * R + q);
        keep(a);
        sum[q][0] = _mm512_dpwssd_epi32(sum[q][0], a, z0);
        sum[q][1] = _mm512_dpwssd_epi32(sum[q][1], a, z1);
      }
    }
    const V<float> unit[2] = {load(o.z_unit + c + p), load(o.z_unit + c + p + L)};
    const V<float> shift = splat<float>(power.shift);
    V<float> y[R][2];
#pragma GCC unroll 8
    for (int q = 0; q < R; ++q) {
      const V<float> own = splat<float>(o.x_unit[r + q] * power.factor);
      for (int h = 0; h < 2; ++h)
        y[q][h] = multiply_add_each<float>((V<float>)_mm512_cvtepi32_ps(sum[q][h]) * unit[h], own, shift);
    }
    if (power.cubed) {
#pragma GCC unroll 8
      for (int q = 0; q < R; ++q)
        for (int h = 0; h < 2; ++h) y[q][h] *= y[q][h] * y[q][h];
    }
    for (int i = 0; i < power.squarings; ++i) {
#pragma GCC unroll 8
      for (int q = 0; q < R; ++q)
        for (int h = 0; h < 2; ++h) y[q][h] *= y[q][h];
    }
#pragma GCC unroll 8
    for (int q = 0; q < R; ++q)
      for (int h = 0; h < 2; ++h) store(out + q * cols + p + h * L, y[q][h]);
  }
}
#endif

// x: the strip's rows r.. as `interleave` left them.
template <class T>
void strip_coarse([[maybe_unused]] const Operand<T>& o, [[maybe_unused]] const T* x, [[maybe_unused]] i64 r,
                  [[maybe_unused]] int rows, [[maybe_unused]] i64 c, [[maybe_unused]] i64 cols,
                  [[maybe_unused]] T* out, [[maybe_unused]] const Raised& power) {
#if defined(__AVX512F__)  // elsewhere no job with coarse points is made
  if constexpr (sizeof(T) == 4) {
    for (int i = 0, size; i < rows; i += size, x += size * o.d, out += size * cols) {
      size = group(rows - i);
      if (size == strip_rows) group_coarse<strip_rows>(o, x, r + i, c, cols, out, power);
      else if (size == 4) group_coarse<4>(o, x, r + i, c, cols, out, power);
      else if (size == 2) group_coarse<2>(o, x, r + i, c, cols, out, power);
      else group_coarse<1>(o, x, r + i, c, cols, out, power);
    }
  }
#endif
}

}  // namespace mercer::MERCER_ISA

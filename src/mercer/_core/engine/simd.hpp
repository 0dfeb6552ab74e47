// Vectors of the widest registers this translation unit may use, on GCC/Clang vector extensions.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mercer::MERCER_ISA {

#if defined(__AVX512F__)
inline constexpr int register_bytes = 64;
inline constexpr int strip_rows = 8;
#elif defined(__AVX2__)
inline constexpr int register_bytes = 32;
inline constexpr int strip_rows = 4;
#else
inline constexpr int register_bytes = 16;
inline constexpr int strip_rows = 4;
#endif

template <class T>
struct vec {
  static constexpr int lanes = register_bytes / static_cast<int>(sizeof(T));
  using int_t = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T type __attribute__((vector_size(register_bytes)));
  typedef int_t itype __attribute__((vector_size(register_bytes)));
  typedef std::make_unsigned_t<int_t> utype __attribute__((vector_size(register_bytes)));
};
template <class T>
using V = typename vec<T>::type;
template <class T>
using I = typename vec<T>::itype;
template <class T>
using Bits = typename vec<T>::utype;
template <class T>
inline constexpr int lanes = vec<T>::lanes;

template <class T>
inline V<T> load(const T* p) {
  V<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void store(T* p, V<T> v) {
  std::memcpy(p, &v, sizeof v);
}
// Hold v in a register: GCC would rather read memory again for each use, and reading is what limits such a loop.
template <class W>
inline void keep([[maybe_unused]] W& v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#endif
}
// Store to an aligned address past the caches: what is not read again soon should not push out what is.
template <class T>
inline void stream(T* p, V<T> v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#elif defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
#else
  store(p, v);
#endif
}
inline void stream_done() {  // other threads may look from here on
#if defined(__x86_64__)
  _mm_sfence();
#endif
}
template <class T>
inline V<T> splat(T x) {
  return x - V<T>{};  // of a scalar and a vector: one broadcast, since x - 0 is x
}
template <class T>
inline I<T> splat_bits(typename vec<T>::int_t x) {
  return x - I<T>{};
}
template <class T>
inline V<T> abs(V<T> v) {
  constexpr auto mask = static_cast<typename vec<T>::int_t>(
      sizeof(T) == 4 ? 0x7fffffffLL : 0x7fffffffffffffffLL);
  return reinterpret_cast<V<T>>(reinterpret_cast<I<T>>(v) & splat_bits<T>(mask));
}
template <class T>
inline V<T> min(V<T> a, V<T> b) {
  return a < b ? a : b;
}
template <class T>
inline V<T> max(V<T> a, V<T> b) {
  return a > b ? a : b;
}
// a b + c, fused wherever this instruction set can, and never left to the compiler: sums that must agree to the last
// bit (the inner product of two equal points, and their squared norm) would not if one were fused and the other not.
template <class T>
inline T multiply_add(T a, T b, T c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  if constexpr (sizeof(T) == 4) return __builtin_fmaf(a, b, c);
  else return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class T>
inline V<T> multiply_add_each(V<T> a, V<T> b, V<T> c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  else return (V<T>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__) && defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  else return (V<T>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__ARM_FEATURE_FMA)
  for (int i = 0; i < lanes<T>; ++i) c[i] = multiply_add<T>(a[i], b[i], c[i]);
  return c;
#else
  return a * b + c;
#endif
}
// Between low and high; NaN stays.
template <class T>
inline V<T> clamp(V<T> v, T low, T high) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (V<T>)_mm512_min_ps((__m512)splat<T>(high), _mm512_max_ps((__m512)splat<T>(low), (__m512)v));
  else
    return (V<T>)_mm512_min_pd((__m512d)splat<T>(high), _mm512_max_pd((__m512d)splat<T>(low), (__m512d)v));
#else
  v = low > v ? splat<T>(low) : v;
  return high < v ? splat<T>(high) : v;
#endif
}
template <class T>
inline V<T> positive(V<T> v) {  // the larger of v and 0
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm512_max_ps((__m512)v, _mm512_setzero_ps());
  else return (V<T>)_mm512_max_pd((__m512d)v, _mm512_setzero_pd());
#else
  return max<T>(v, V<T>{});
#endif
}
template <class T>
inline T sum(V<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_reduce_add_ps((__m512)v);
  else return _mm512_reduce_add_pd((__m512d)v);
#else
  T s[lanes<T>];
  std::memcpy(s, &v, sizeof v);
  for (int half = lanes<T> / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) s[i] += s[i + half];
  return s[0];
#endif
}
template <class T>
inline V<T> sqrt(V<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm512_sqrt_ps((__m512)v);
  else return (V<T>)_mm512_sqrt_pd((__m512d)v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm256_sqrt_ps((__m256)v);
  else return (V<T>)_mm256_sqrt_pd((__m256d)v);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm_sqrt_ps((__m128)v);
  else return (V<T>)_mm_sqrt_pd((__m128d)v);
#else
  for (int i = 0; i < lanes<T>; ++i) v[i] = std::sqrt(v[i]);
  return v;
#endif
}

// The lanes of `top` and `bottom` whose index lacks the bit S (or has it, for High), merged.
template <class T, int S, bool High>
inline V<T> exchange(V<T> top, V<T> bottom) {
  constexpr int L = lanes<T>;
  constexpr auto pick = [](int j) { return (j & S) ? L + j - (High ? 0 : S) : j + (High ? S : 0); };
#if defined(__clang__)
  return [&]<int... J>(std::integer_sequence<int, J...>) {
    return __builtin_shufflevector(top, bottom, pick(J)...);
  }(std::make_integer_sequence<int, L>{});
#else
  I<T> index;
  for (int j = 0; j < L; ++j) index[j] = pick(j);
  return __builtin_shuffle(top, bottom, index);
#endif
}

// Transpose a lanes x lanes block held in registers by log2(lanes) rounds of exchanges.
template <class T, int S = lanes<T> / 2>
inline void transpose(V<T>* a) {
  constexpr int L = lanes<T>;
  for (int i = 0; i < L; ++i) {
    if (i & S) continue;
    const V<T> top = a[i], bottom = a[i + S];
    a[i] = exchange<T, S, false>(top, bottom);
    a[i + S] = exchange<T, S, true>(top, bottom);
  }
  if constexpr (S > 1) transpose<T, S / 2>(a);
}

}  // namespace mercer::MERCER_ISA

// Elementary functions on vectors, accurate to about one unit in the last place over the whole range:
// results that are denormal, zero or infinite included.
#pragma once

#include <algorithm>
#include <limits>

#include "simd.hpp"

namespace mercer::MERCER_ISA {

// 2^n * p for |n| up to twice the exponent range: two factors, so that a denormal result rounds once.
template <class T>
inline V<T> scale_by_power(V<T> p, V<T> n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (V<T>)_mm512_scalef_ps((__m512)p, (__m512)n);
  else return (V<T>)_mm512_scalef_pd((__m512d)p, (__m512d)n);
#else
  constexpr int bits = sizeof(T) == 4 ? 23 : 52;
  constexpr int bias = sizeof(T) == 4 ? 127 : 1023;
  const I<T> whole = __builtin_convertvector(n, I<T>);
  const I<T> half = whole >> 1;
  const auto first = reinterpret_cast<V<T>>((half + bias) << bits);
  const auto second = reinterpret_cast<V<T>>((whole - half + bias) << bits);
  return p * first * second;
#endif
}

#if defined(__AVX512F__)
// 2^(j / 16) for j the low four bits of each lane of t: the table fits two registers.
inline V<double> sixteenths(V<double> t) {
  alignas(64) static constexpr double table[16] = {
      1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916,
      1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927,
      1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
      1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474};
  return (V<double>)_mm512_permutex2var_pd((__m512d)load(table), (__m512i)t, (__m512d)load(table + 8));
}
#endif

// exp(c x + e) after Cody and Waite (1980): 2^n exp(r), n = round((c x + e) / ln 2), |r| <= ln(2) / 2.
template <class T>
struct Exponent;

// The relative error of exp is the absolute error of its argument, and a float32 argument of -80 is only good to 4e-6.
// So c comes in two parts, and c x is not rounded before n ln 2 is taken from it.
template <>
struct Exponent<float> {
  float c, c_low, e;
  Exponent(double factor, double shift)
      : c(static_cast<float>(factor)),
        c_low(static_cast<float>(factor - static_cast<double>(c))),
        e(static_cast<float>(shift)) {}

  V<float> operator()(V<float> x) const {
    const V<float> y = x * c + e;
    const V<float> n = (y * 1.44269504f + 12582912.0f) - 12582912.0f;
    V<float> r = x * c - n * 0.693359375f;
    r = (x * c_low + r) + (n * 2.12194440e-4f + e);
    V<float> p = splat<float>(1.9875691500e-4f);
    for (const float k : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
      p = p * r + k;
    p = scale_by_power<float>(p * (r * r) + r + 1.0f, n);
    p = y < -104.0f ? V<float>{} : p;
    return y > 89.0f ? splat<float>(std::numeric_limits<float>::infinity()) : p;
  }
};

template <>
struct Exponent<double> {
  double c, e;
  Exponent(double factor, double shift) : c(factor), e(shift) {}

  V<double> operator()(V<double> x) const {
    const V<double> y = clamp<double>(x * c + e, -746.0, 710.0);
#if defined(__AVX512F__)
    // In sixteenths of ln 2: a table of 2^(j/16) makes the polynomial short. The table's index is in the low bits of
    // the rounded sum, and scaling takes the whole part of n / 16 by itself.
    const V<double> t = y * 23.083120654223415 + 6755399441055744.0, n = t - 6755399441055744.0;
    const V<double> r = (y - n * (6.93145751953125e-1 / 16)) - n * (1.42860682030941723212e-6 / 16);
    V<double> p = splat<double>(0.0013889034639665864);
    for (const double k : {0.008333449934107185, 0.04166666666495362, 0.16666666665296223, 0.5}) p = p * r + k;
    const V<double> base = sixteenths(t);
    return scale_by_power<double>((p * (r * r) + r) * base + base, n * 0.0625);
#else
    const V<double> n = (y * 1.4426950408889634074 + 6755399441055744.0) - 6755399441055744.0;
    const V<double> r = (y - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
    // Interpolates (exp(r) - 1 - r) / r^2 at Chebyshev points; relative error of exp below 2e-17.
    V<double> p = splat<double>(2.5100424157005067e-08);
    for (const double k : {2.7620138719733994e-07, 2.7557268378684192e-06, 2.480152119021773e-05, 0.00019841269863105968,
                           0.0013888888917281794, 0.008333333333330051, 0.04166666666662399, 0.16666666666666669, 0.5000000000000001})
      p = p * r + k;
    return scale_by_power<double>(p * (r * r) + r + 1.0, n);
#endif
  }
};

// exp(c x + e) with fewer operations, where the result is known to be a normal number: 2^(n + f), n + f =
// (c x + e) / ln 2, by adding n to the exponent's bits. They come from the low bits of a sum with a large constant.
// The polynomials interpolate (2^f - 1) / f at Chebyshev points; their errors are 5e-9 (float32) and 2e-17 (float64).
template <class T>
struct PowerOfTwo;

template <>
struct PowerOfTwo<float> {
  float c, c_low, e;
  PowerOfTwo(double factor, double shift)
      : c(static_cast<float>(factor * log2_e)),
        c_low(static_cast<float>(factor * log2_e - static_cast<double>(c))),
        e(static_cast<float>(shift * log2_e)) {}

  static bool covers(double largest) { return largest * log2_e < 124; }

  // The product is not rounded before n is taken from it, and the factor comes in two parts (see Exponent).
  V<float> operator()(V<float> x) const {
    const V<float> t = multiply_add_each<float>(x, splat<float>(c), splat<float>(e)) + 12582912.0f;
    V<float> f = multiply_add_each<float>(x, splat<float>(c), 12582912.0f - t) + e;
    f = multiply_add_each<float>(x, splat<float>(c_low), f);
    V<float> p = splat<float>(0.0001545316294512069f);
    for (const float k : {0.0013390863364671234f, 0.009618082557277852f, 0.05550357114219078f, 0.24022650760568126f,
                          0.6931471880262288f, 1.0f})
      p = p * f + k;
    return reinterpret_cast<V<float>>(reinterpret_cast<I<float>>(p) + (reinterpret_cast<I<float>>(t) << 23));
  }

 private:
  static constexpr double log2_e = 1.4426950408889634074;
};

template <>
struct PowerOfTwo<double> {
  double c, e;
  PowerOfTwo(double factor, double shift) : c(factor * log2_e), e(shift * log2_e) {}

  static bool covers(double largest) { return largest * log2_e < 1000; }

  V<double> operator()(V<double> x) const {
    const V<double> y = multiply_add_each<double>(x, splat<double>(c), splat<double>(e));
#if defined(__AVX512F__)
    // n in sixteenths: a table of 2^(j/16) makes the polynomial short (see Exponent).
    const V<double> t = y + 422212465065984.0, f = y - (t - 422212465065984.0);
    V<double> p = splat<double>(0.00015403723980749256);
    for (const double k : {0.0013333781576784268, 0.009618129106919537, 0.0555041086566393, 0.24022650695910075,
                           0.6931471805599457})
      p = p * f + k;
    const I<double> sixteenths_below = reinterpret_cast<I<double>>(t) & 15;
    const V<double> base = reinterpret_cast<V<double>>(reinterpret_cast<I<double>>(sixteenths(t)) +
                                                       ((reinterpret_cast<I<double>>(t) - sixteenths_below) << 48));
    return p * (f * base) + base;
#else
    const V<double> t = y + 6755399441055744.0, f = y - (t - 6755399441055744.0);
    V<double> p = splat<double>(4.4549605981865186e-10);
    for (const double k : {7.072585949269223e-09, 1.0178062445845774e-07, 1.321544258792169e-06, 1.525273382983612e-05,
                           0.0001540353044173605, 0.0013333558146416936, 0.009618129107606888, 0.0555041086648216,
                           0.24022650695910097, 0.6931471805599453, 1.0})
      p = p * f + k;
    return reinterpret_cast<V<double>>(reinterpret_cast<I<double>>(p) + (reinterpret_cast<I<double>>(t) << 52));
#endif
  }

 private:
  static constexpr double log2_e = 1.4426950408889634074;
};

// (1 + r + p r^2) exp(-r), r = sqrt(c x + e): the square of exp(-r / 2), which is not yet denormal where the product is
// not. Beyond r = 3000 it is 0, not infinity times zero.
template <class T>
struct Damped {
  T c, e, p;
  Exponent<T> half{-0.5, 0};
  Damped(double factor, double shift, double square)
      : c(static_cast<T>(factor)), e(static_cast<T>(shift)), p(static_cast<T>(square)) {}

  V<T> operator()(V<T> x) const {
    const V<T> r = min<T>(sqrt<T>(x * c + e), splat<T>(T(3000)));
    const V<T> h = half(r);
    return ((r * p + T(1)) * r + T(1)) * h * h;
  }
};

// The same where exp(-r) is known to be a normal number.
template <class T>
struct DampedNear {
  T c, e, p;
  PowerOfTwo<T> power{-1, 0};
  DampedNear(double factor, double shift, double square)
      : c(static_cast<T>(factor)), e(static_cast<T>(shift)), p(static_cast<T>(square)) {}

  static bool covers(double largest) { return PowerOfTwo<T>::covers(std::sqrt(largest)); }

  V<T> operator()(V<T> x) const {
    const V<T> r = sqrt<T>(x * c + e);
    return ((r * p + T(1)) * r + T(1)) * power(r);
  }
};

// log after fdlibm: x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), a series in s = f / (2 + f).
template <class T>
inline V<T> log(V<T> x) {
  constexpr bool f32 = sizeof(T) == 4;
  constexpr int bits = f32 ? 23 : 52;
  using int_t = typename vec<T>::int_t;
  const T tiny = std::numeric_limits<T>::min();
  const T lift = f32 ? T(33554432.0) : T(18014398509481984.0);  // 2^25, 2^54
  const auto denormal = x < tiny;
  const V<T> normal = denormal ? x * lift : x;
  // Adding the distance from sqrt(1/2) to 1 moves the wanted exponent into the exponent field. Unsigned, since
  // the bits of a NaN may wrap around.
  const int_t offset = f32 ? int_t(0x3f800000 - 0x3f3504f3) : int_t(0x3ff0000000000000LL - 0x3fe6a09e667f3bcdLL);
  const int_t half = f32 ? int_t(0x3f3504f3) : int_t(0x3fe6a09e667f3bcdLL);
  const int_t mantissa = (int_t(1) << bits) - 1;
  const I<T> moved = reinterpret_cast<I<T>>(reinterpret_cast<Bits<T>>(normal) +
                                            static_cast<std::make_unsigned_t<int_t>>(offset));
  const I<T> k = (moved >> bits) - int_t(f32 ? 127 : 1023);
  const V<T> f = reinterpret_cast<V<T>>((moved & mantissa) + half) - T(1);
  V<T> e = __builtin_convertvector(k, V<T>);
  e = denormal ? e - T(f32 ? 25 : 54) : e;
  const V<T> s = f / (f + T(2));
  const V<T> z = s * s;
  V<T> series;
  T ln2_high, ln2_low;
  if constexpr (f32) {
    ln2_high = 6.9313812256e-01f;
    ln2_low = 9.0580006145e-06f;
    series = splat<T>(0.24279078841f);
    for (const float c : {0.28498786688f, 0.40000972152f, 0.66666662693f}) series = series * z + c;
  } else {
    ln2_high = 6.93147180369123816490e-01;
    ln2_low = 1.90821492927058770002e-10;
    series = splat<T>(1.479819860511658591e-01);
    for (const double c : {1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
                           2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01})
      series = series * z + c;
  }
  series *= z;
  const V<T> half_square = f * f * T(0.5);
  V<T> y = e * ln2_high - ((half_square - (s * (half_square + series) + e * ln2_low)) - f);
  const T infinity = std::numeric_limits<T>::infinity();
  y = x == infinity ? splat<T>(infinity) : y;
  y = x == T(0) ? splat<T>(-infinity) : y;
  y = x < T(0) ? splat<T>(std::numeric_limits<T>::quiet_NaN()) : y;
  return x != x ? x : y;
}

template <class T>
inline V<T> log1p(V<T> x) {
  const V<T> u = x + T(1);
  const V<T> lost = (x - (u - T(1))) / u;  // what rounding 1 + x dropped, to first order
  const V<T> y = log<T>(u);
  return abs<T>(lost) < T(1) ? y + lost : y;
}

// tanh after Cephes: 1 - 2 / (exp(2|x|) + 1), and near 0, where that cancels, x + x^3 p(x^2).
template <class T>
inline V<T> tanh(V<T> x) {
  const V<T> z = x * x;
  V<T> near;
  if constexpr (sizeof(T) == 4) {
    near = splat<T>(-5.70498872745e-3f);
    for (const float c : {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f})
      near = near * z + c;
  } else {
    const V<T> p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
    const V<T> q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3;
    near = p / q;
  }
  near = x + x * z * near;
  const V<T> size = abs<T>(x);
  const V<T> far = T(1) - T(2) / (Exponent<T>(2, 0)(size) + T(1));
  return size < T(0.625) ? near : (x < T(0) ? -far : far);
}

// Rare in kernels: the C library's own, one lane at a time.
template <class T>
inline V<T> atan2(V<T> y, V<T> x) {
  for (int i = 0; i < lanes<T>; ++i) y[i] = std::atan2(y[i], x[i]);
  return y;
}

// Repeated squaring; the exponent is a compile-once constant of the program.
template <class T>
inline V<T> powi(V<T> x, int n) {
  int k = n < 0 ? -n : n;
  if (k == 0) return splat<T>(T(1));
  for (; !(k & 1); k >>= 1) x *= x;
  V<T> y = x;
  while (k >>= 1) {
    x *= x;
    if (k & 1) y *= x;
  }
  return n < 0 ? T(1) / y : y;
}

}  // namespace mercer::MERCER_ISA

// Terms of a sum: a function of one register, added to what another one holds.
#pragma once

#include "engine.hpp"
#include "math.hpp"

namespace mercer::MERCER_ISA {

template <class T, class F>
inline void unary(T* dst, const T* a, i64 size, F f) {
  for (i64 i = 0; i < size; i += lanes<T>) store(dst + i, V<T>(f(load(a + i))));
}
template <class T, class F>
inline void binary(T* dst, const T* a, const T* b, i64 size, F f) {
  for (i64 i = 0; i < size; i += lanes<T>) store(dst + i, V<T>(f(load(a + i), load(b + i))));
}

// sum = base + f(a) + g(b)
template <class T, class F, class G>
inline void add_terms(T* sum, const T* base, const T* a, const T* b, i64 size, F f, G g) {
  for (i64 i = 0; i < size; i += lanes<T>)
    store(sum + i, V<T>(g(load(b + i)) + (f(load(a + i)) + load(base + i))));
}

inline bool is_term(const Instruction& i) {
  return i.op == Op::add || i.op == Op::exp_add || i.op == Op::damp_add ||
         (i.op == Op::powi_add && (i.p == -1 || i.p == 2 || i.p == 3));
}

// Whether the second instruction adds a term to the sum that the first one adds a term to.
inline bool one_sum(const Instruction& first, const Instruction& second) {
  return is_term(first) && is_term(second) && second.b == first.dst && second.dst == first.dst &&
         second.a != first.dst;
}

// Call `use` with the function whose values the instruction adds; no argument of it is larger than `reach` in size.
template <class T, class F>
void with_term(const Instruction& i, double reach, F&& use) {
  using U = V<T>;
  const T k = static_cast<T>(i.c), e = i.e == 0 ? T(-0.0) : static_cast<T>(i.e);
  const double most = std::abs(i.c) * reach + std::abs(i.e);
  if (i.op == Op::exp_add)
    return PowerOfTwo<T>::covers(most) ? use(PowerOfTwo<T>(i.c, i.e)) : use(Exponent<T>(i.c, i.e));
  if (i.op == Op::damp_add)
    return DampedNear<T>::covers(most) ? use(DampedNear<T>(i.c, i.e, i.p)) : use(Damped<T>(i.c, i.e, i.p));
  if (i.op == Op::add) return use([=](U x) { return x * k + e; });
  if (i.p == -1) return use([=](U x) { return T(1) / (x * k + e); });
  if (i.p == 2) return use([=](U x) { x = x * k + e; return x * x; });
  return use([=](U x) { x = x * k + e; return x * x * x; });
}

}  // namespace mercer::MERCER_ISA

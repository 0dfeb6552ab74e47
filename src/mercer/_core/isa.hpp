// Tables of functions that are compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace mercer {

using i64 = std::int64_t;

template <class Table>
const Table& table_baseline();
template <class Table>
const Table& table_avx2();
template <class Table>
const Table& table_avx512();

}  // namespace mercer

// The tables of one instruction set, at the end of a file that is compiled for each: MERCER_TABLES makes those of a template
// for both types of numbers, which the entries call T.
#define MERCER_JOIN2(a, b) a##b
#define MERCER_JOIN(a, b) MERCER_JOIN2(a, b)
#define MERCER_TABLE_OF(Type, Number, ...)              \
  template <>                                           \
  const Type& MERCER_JOIN(table_, MERCER_ISA)<Type>() { \
    using namespace MERCER_ISA;                         \
    using T [[maybe_unused]] = Number;                  \
    static const Type table{__VA_ARGS__};               \
    return table;                                       \
  }
#define MERCER_TABLE(Type, ...) MERCER_TABLE_OF(Type, double, __VA_ARGS__)
#define MERCER_TABLES(Family, ...)                   \
  MERCER_TABLE_OF(Family<float>, float, __VA_ARGS__) \
  MERCER_TABLE_OF(Family<double>, double, __VA_ARGS__)

// What the Python bindings share: arrays of NumPy, how a call is refused, and the instruction set in use. Every call that
// computes runs on one thread, most of them without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string>

#include "isa.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mercer {

template <class T, class... Shape>
using Output = nb::ndarray<T, nb::numpy, nb::device::cpu, nb::c_contig, Shape...>;
template <class T, class... Shape>
using Array = Output<const T, Shape...>;

// The name of an argument that is never converted: a copy would take what is written to it with it.
inline auto operator""_array(const char* name, std::size_t) { return nb::arg(name).noconvert(); }

using WithoutGIL = nb::call_guard<nb::gil_scoped_release>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// The widest instruction set that both this binary and this processor have; MERCER_ISA asks for a narrower one.
const std::string& isa();

template <class Table>
const Table& table() {
#if defined(MERCER_X86_DISPATCH)
  static const Table& chosen = isa() == "avx512" ? table_avx512<Table>()
                               : isa() == "avx2" ? table_avx2<Table>()
                                                 : table_baseline<Table>();
  return chosen;
#else
  return table_baseline<Table>();
#endif
}

// The rooms of the module.
void bind_engine(nb::module_& module);
void bind_machines(nb::module_& module);
void bind_sequences(nb::module_& module);

}  // namespace mercer

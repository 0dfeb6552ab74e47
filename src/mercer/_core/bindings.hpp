// What the Python bindings share: the parts that module.cpp puts together, arrays of NumPy, and how a call is refused.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string>

namespace nb = nanobind;
using namespace nb::literals;

namespace mercer {

template <class T>
using Array = nb::ndarray<const T, nb::numpy, nb::device::cpu, nb::c_contig>;
template <class T>
using Output = nb::ndarray<T, nb::numpy, nb::device::cpu, nb::c_contig>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

void bind_linear(nb::module_& module, const std::string& isa);
void bind_paths(nb::module_& module);
void bind_ridge(nb::module_& module, const std::string& isa);
void bind_smo(nb::module_& module, const std::string& isa);
void bind_strings(nb::module_& module, const std::string& isa);

}  // namespace mercer

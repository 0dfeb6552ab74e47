// Python bindings of what kernels of strings ask of the core, added to the module by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace mercer {

void bind_strings(nanobind::module_& module, const std::string& isa);

}  // namespace mercer

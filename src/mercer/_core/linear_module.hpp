// Python bindings of the looks at a linear model's rows, added to the module by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace mercer {

void bind_linear(nanobind::module_& module, const std::string& isa);

}  // namespace mercer

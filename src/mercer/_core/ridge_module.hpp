// Python bindings of what ridge regression asks of the core, added to the module by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace mercer {

void bind_ridge(nanobind::module_& module, const std::string& isa);

}  // namespace mercer

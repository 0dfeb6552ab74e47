// Python bindings of SMO, added to the module by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace mercer {

void bind_smo(nanobind::module_& module, const std::string& isa);

}  // namespace mercer

// Python bindings of counts of shortest paths, added to the module by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace mercer {

void bind_paths(nanobind::module_& module);

}  // namespace mercer

// The module: which instruction set it runs, and what it is put together of.
#include <nanobind/stl/string.h>

#include <cstdlib>

#include "bindings.hpp"

namespace mercer {
namespace {

// The widest instruction set that both this binary and this processor have; MERCER_ISA asks for a narrower one.
std::string choose_isa() {
#if defined(MERCER_X86_DISPATCH)
  const char* wish = std::getenv("MERCER_ISA");
  const std::string limit = wish ? wish : "avx512";
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx512 && limit == "avx512") return "avx512";
  if (avx2 && limit != "baseline") return "avx2";
#endif
  return "baseline";
}

}  // namespace

const std::string& isa() {
  static const std::string name = choose_isa();
  return name;
}

}  // namespace mercer

NB_MODULE(_core, module) {
  using namespace mercer;
  module.doc() = "Blocks of kernel values: pair statistics, formula programs, products with vectors.";
  bind_engine(module);
  bind_machines(module);
  bind_sequences(module);
  module.def("isa", [] { return isa(); }, "The instruction set in use.");
}

// Python bindings of SMO. Every call releases the GIL and runs on one thread.
#include "smo_module.hpp"

#include <nanobind/ndarray.h>

#include <stdexcept>

#include "smo.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mercer {
namespace {

template <class T>
using Array = nb::ndarray<const T, nb::numpy, nb::device::cpu, nb::c_contig>;
template <class T>
using Output = nb::ndarray<T, nb::numpy, nb::device::cpu, nb::c_contig>;

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

struct Tables {
  const Smo<float>* single;
  const Smo<double>* wide;
  const Selection* selection;
};
Tables tables;

Variables variables(Output<double> gradient, Output<double> plus, Output<double> minus, Array<double> upper,
                    Array<double> lower, Array<double> width, int groups) {
  const std::size_t n = gradient.size();
  require(plus.size() == n && minus.size() == n && upper.size() == n && lower.size() == n && width.size() == n,
          "the vectors of a problem differ in length");
  require(groups == 1 || groups == 2, "a problem has one group of variables or two");
  return {static_cast<i64>(n), gradient.data(), plus.data(), minus.data(), upper.data(), lower.data(), width.data(), groups};
}

template <class T>
nb::tuple solve(Array<T> K, Output<double> gradient, Output<double> plus, Output<double> minus, Array<double> upper,
                Array<double> lower, Array<double> width, int groups, double tol, i64 max_steps, bool exact) {
  const Variables v = variables(gradient, plus, minus, upper, lower, width, groups);
  require(K.ndim() == 2 && K.shape(0) == K.shape(1) && i64(K.shape(0)) == v.n, "K has the wrong shape");
  const T* k = K.data();
  const Smo<T>* smo;
  if constexpr (sizeof(T) == 4) smo = tables.single;
  else smo = tables.wide;
  Steps steps;
  {
    nb::gil_scoped_release release;
    steps = smo->solve(k, v.n, v, tol, max_steps, exact);
  }
  return nb::make_tuple(steps.count, steps.violation);
}

nb::tuple select(Output<double> gradient, Output<double> plus, Output<double> minus, Array<double> upper,
                 Array<double> lower, Array<double> width, int groups, Array<std::int32_t> hot, Array<std::int32_t> old,
                 i64 fresh, Output<std::int32_t> out) {
  const Variables v = variables(gradient, plus, minus, upper, lower, width, groups);
  const auto within = [&](const Array<std::int32_t>& a) {
    for (std::size_t k = 0; k < a.size(); ++k)
      if (a.data()[k] < 0 || a.data()[k] >= v.n) return false;
    return true;
  };
  require(within(hot) && within(old), "a point is out of range");
  const std::int32_t *h = hot.data(), *o = old.data();
  std::int32_t* to = out.data();
  const i64 count = hot.size(), kept = old.size(), size = out.size();
  double violation = 0;
  i64 found = 0;
  {
    nb::gil_scoped_release release;
    found = tables.selection->select(v, h, count, o, kept, fresh, size, to, &violation);
  }
  return nb::make_tuple(found, violation);
}

nb::tuple offsets(Output<double> gradient, Output<double> plus, Output<double> minus, Array<double> upper,
                  Array<double> lower, Array<double> width, int groups) {
  const Variables v = variables(gradient, plus, minus, upper, lower, width, groups);
  Offsets o;
  {
    nb::gil_scoped_release release;
    o = tables.selection->offsets(v);
  }
  return nb::make_tuple(o.plus, o.minus, o.gap);
}

template <class T>
void bind_solve(nb::module_& module) {
  module.def("smo", &solve<T>, "K"_a.noconvert(), "gradient"_a.noconvert(), "plus"_a.noconvert(), "minus"_a.noconvert(),
             "upper"_a.noconvert(), "lower"_a.noconvert(), "width"_a.noconvert(), "groups"_a, "tol"_a, "max_steps"_a,
             "exact"_a);
}

}  // namespace

void bind_smo(nb::module_& module, const std::string& isa) {
  tables = {&smo_baseline<float>(), &smo_baseline<double>(), &selection_baseline()};
#if defined(MERCER_X86_DISPATCH)
  if (isa == "avx512") tables = {&smo_avx512<float>(), &smo_avx512<double>(), &selection_avx512()};
  if (isa == "avx2") tables = {&smo_avx2<float>(), &smo_avx2<double>(), &selection_avx2()};
#endif
  bind_solve<float>(module);
  bind_solve<double>(module);
  module.def("select", &select, "gradient"_a.noconvert(), "plus"_a.noconvert(), "minus"_a.noconvert(),
             "upper"_a.noconvert(), "lower"_a.noconvert(), "width"_a.noconvert(), "groups"_a, "hot"_a.noconvert(),
             "old"_a.noconvert(), "fresh"_a, "out"_a.noconvert());
  module.def("offsets", &offsets, "gradient"_a.noconvert(), "plus"_a.noconvert(), "minus"_a.noconvert(),
             "upper"_a.noconvert(), "lower"_a.noconvert(), "width"_a.noconvert(), "groups"_a);
}

}  // namespace mercer

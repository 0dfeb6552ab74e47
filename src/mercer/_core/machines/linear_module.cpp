// Python bindings of the looks at a linear model's rows. Every call releases the GIL and runs on one thread.
#include "../bindings.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "linear.hpp"

namespace mercer {
namespace {

struct Tables {
  const Linear<float>* single;
  const Linear<double>* wide;
};
Tables tables;

template <class T>
const Linear<T>& table() {
  if constexpr (sizeof(T) == 4) return *tables.single;
  else return *tables.wide;
}

// `target` has one column for targets that are all the same, `cost` one entry for equal costs.
template <class T>
LinearData<T> data(const Array<T>& x, const Array<double>& sign, const Array<double>& target,
                   const Array<double>& cost, bool squared, i64 first, i64 last) {
  require(x.ndim() == 2 && sign.ndim() == 2 && target.ndim() == 2, "an array has the wrong number of dimensions");
  LinearData<T> out;
  out.x = x.data();
  out.n = x.shape(0);
  out.d = x.shape(1);
  out.sides = sign.shape(0);
  require(i64(sign.shape(1)) == out.n && target.shape(0) == sign.shape(0), "an array has the wrong shape");
  out.one_target = target.shape(1) == 1;
  out.one_cost = cost.size() == 1;
  require(out.one_target || i64(target.shape(1)) == out.n, "an array has the wrong shape");
  require(out.one_cost || i64(cost.size()) == out.n, "an array has the wrong shape");
  require(0 <= first && first <= last && last <= out.n && out.n < i64(1) << 31, "rows out of range");
  out.sign = sign.data();
  out.target = target.data();
  out.cost = cost.data();
  out.squared = squared;
  return out;
}

template <class T>
nb::tuple sweep(Array<T> x, Array<double> sign, Array<double> target, Array<double> cost, bool squared, i64 first,
                i64 last, Array<double> w, double shift, double half, Output<double> pull,
                std::optional<Output<double>> alpha, std::optional<Output<std::int32_t>> band,
                std::optional<Output<double>> gram, Array<double> centre, Array<double> inverse_scale, i64 thin) {
  const LinearData<T> rows = data<T>(x, sign, target, cost, squared, first, last);
  const i64 width = (rows.d + 8) / 8 * 8;
  require(i64(w.size()) == rows.d && i64(pull.size()) == rows.d + 1, "w or pull has the wrong size");
  require(i64(centre.size()) == rows.d && i64(inverse_scale.size()) == rows.d && thin > 0, "malformed rows");
  require(!alpha || i64(alpha->size()) == rows.n * rows.sides, "alpha has the wrong size");
  require(!band || i64(band->size()) >= last - first, "band has the wrong size");
  require(!gram || i64(gram->size()) == width * width, "gram has the wrong size");
  LinearSweep s;
  s.w = w.data();
  s.shift = shift;
  s.half = half;
  s.alpha = alpha ? alpha->data() : nullptr;
  s.band = band ? band->data() : nullptr;
  s.pull = pull.data();
  s.gram = gram ? gram->data() : nullptr;
  s.centre = centre.data();
  s.inverse_scale = inverse_scale.data();
  s.thin = thin;
  LinearSums sums;
  {
    nb::gil_scoped_release release;
    sums = table<T>().sweep(rows, s, first, last);
  }
  return nb::make_tuple(sums.risk, sums.gain, sums.square, sums.curved);
}

template <class T>
nb::tuple proof(Array<T> x, Array<double> sign, Array<double> target, Array<double> cost, bool squared, i64 first,
                i64 last, Array<double> w, double shift, Array<double> apart, double apart_shift, Array<double> alpha,
                double unit, Output<double> pull) {
  const LinearData<T> rows = data<T>(x, sign, target, cost, squared, first, last);
  require(i64(w.size()) == rows.d && i64(apart.size()) == rows.d && i64(pull.size()) == rows.d + 1,
          "w, apart or pull has the wrong size");
  require(i64(alpha.size()) == rows.n * rows.sides, "alpha has the wrong size");
  LinearProof p;
  p.w = w.data();
  p.apart = apart.data();
  p.shift = shift;
  p.apart_shift = apart_shift;
  p.alpha = alpha.data();
  p.unit = unit;
  p.pull = pull.data();
  LinearWorst worst;
  {
    nb::gil_scoped_release release;
    worst = table<T>().proof(rows, p, first, last);
  }
  return nb::make_tuple(worst.risk, worst.gain, worst.square, worst.violation, worst.apart);
}

template <class T>
void bind(nb::module_& module) {
  module.def("linear_sweep", &sweep<T>, "x"_a.noconvert(), "sign"_a.noconvert(), "target"_a.noconvert(),
             "cost"_a.noconvert(), "squared"_a, "first"_a, "last"_a, "w"_a.noconvert(), "shift"_a, "half"_a,
             "pull"_a.noconvert(), "alpha"_a.noconvert().none(), "band"_a.noconvert().none(),
             "gram"_a.noconvert().none(), "centre"_a.noconvert(), "inverse_scale"_a.noconvert(), "thin"_a);
  module.def("linear_proof", &proof<T>, "x"_a.noconvert(), "sign"_a.noconvert(), "target"_a.noconvert(),
             "cost"_a.noconvert(), "squared"_a, "first"_a, "last"_a, "w"_a.noconvert(), "shift"_a,
             "apart"_a.noconvert(), "apart_shift"_a, "alpha"_a.noconvert(), "unit"_a, "pull"_a.noconvert());
}

}  // namespace

void bind_linear(nb::module_& module, const std::string& isa) {
  tables = {&linear_baseline<float>(), &linear_baseline<double>()};
#if defined(MERCER_X86_DISPATCH)
  if (isa == "avx512") tables = {&linear_avx512<float>(), &linear_avx512<double>()};
  if (isa == "avx2") tables = {&linear_avx2<float>(), &linear_avx2<double>()};
#endif
  bind<float>(module);
  bind<double>(module);
}

}  // namespace mercer

// Python bindings of the solvers' inner loops: SMO, a linear model's rows, ridge regression.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <initializer_list>
#include <optional>
#include <tuple>
#include <utility>

#include "../bindings.hpp"
#include "linear.hpp"
#include "ridge.hpp"
#include "smo.hpp"

namespace mercer {
namespace {

template <class A>
bool has_shape(const A& array, std::initializer_list<i64> shape) {
  if (array.ndim() != shape.size()) return false;
  std::size_t k = 0;
  for (const i64 size : shape)
    if (i64(array.shape(k++)) != size) return false;
  return true;
}

// -- SMO --------------------------------------------------------------------------------------------------

// The arguments that make a problem, the problem made of them, and their names.
#define MERCER_PROBLEM                                                                                          \
  Output<double> gradient, Output<double> plus, Output<double> minus, Array<double> upper, Array<double> lower, \
      Array<double> width, int groups
#define MERCER_VARIABLES variables(gradient, plus, minus, upper, lower, width, groups)
#define MERCER_NAMES \
  "gradient"_array, "plus"_array, "minus"_array, "upper"_array, "lower"_array, "width"_array, "groups"_a

Variables variables(const Output<double>& gradient, const Output<double>& plus, const Output<double>& minus,
                    const Array<double>& upper, const Array<double>& lower, const Array<double>& width, int groups) {
  const std::size_t n = gradient.size();
  require(plus.size() == n && minus.size() == n && upper.size() == n && lower.size() == n && width.size() == n,
          "the vectors of a problem differ in length");
  require(groups == 1 || groups == 2, "a problem has one group of variables or two");
  return {i64(n), gradient.data(), plus.data(), minus.data(), upper.data(), lower.data(), width.data(), groups};
}

void require_within(const Array<std::int32_t>& at, i64 n) {
  for (std::size_t k = 0; k < at.size(); ++k)
    require(at.data()[k] >= 0 && at.data()[k] < n, "a point is out of range");
}

void require_ascending(const Array<std::int32_t>& at, i64 n) {
  for (std::size_t k = 0; k < at.size(); ++k)
    require(at.data()[k] >= 0 && at.data()[k] < n && (k == 0 || at.data()[k - 1] < at.data()[k]),
            "the points are out of range, or not in ascending order");
}

using Moved = std::pair<i64, double>;  // steps, and the violation that is left

// Where looks at each of some problems are kept, and how many of each; nowhere if nobody asks.
struct Room {
  Look* looks = nullptr;
  i64 each = 0;
};
Room room_of(const std::optional<Output<double>>& looks, i64 problems) {
  if (!looks) return {};
  require(looks->ndim() == 3 && i64(looks->shape(0)) == problems && looks->shape(1) > 0 &&
              looks->shape(2) * sizeof(double) == sizeof(Look),
          "looks has the wrong shape");
  return {reinterpret_cast<Look*>(looks->data()), i64(looks->shape(1))};
}

template <class T>
Moved solve(Array<T> K, MERCER_PROBLEM, double tol, i64 max_steps, bool exact, std::optional<Output<double>> looks) {
  const Variables v = MERCER_VARIABLES;
  require(has_shape(K, {v.n, v.n}), "K has the wrong shape");
  const Room room = room_of(looks, 1);
  const Steps steps = table<Smo<T>>().solve(K.data(), v.n, v, tol, max_steps, exact, room.looks, room.each);
  return {steps.count, steps.violation};
}

template <class T>
Moved part(Array<T> K, Array<std::int32_t> at, MERCER_PROBLEM, double tol, i64 max_steps) {
  const Variables v = MERCER_VARIABLES;
  require(has_shape(K, {v.n, v.n}), "K has the wrong shape");
  require_ascending(at, v.n);
  const Steps steps = table<Smo<T>>().part(K.data(), v, at.data(), i64(at.size()), tol, max_steps);
  return {steps.count, steps.violation};
}

template <class T>
void add_rows(Array<T> K, Array<std::int32_t> at, Array<double> change, Output<double> gradient) {
  const i64 n = i64(gradient.size()), count = i64(at.size());
  require(has_shape(K, {n, n}), "K has the wrong shape");
  require(i64(change.size()) == count, "the vectors of a problem differ in length");
  require_ascending(at, n);
  table<Smo<T>>().add_rows(K.data(), n, at.data(), change.data(), count, gradient.data());
}

Outcome* outcomes(const Output<double>& out, i64 count) {
  require(i64(out.size()) * i64(sizeof(double)) == count * i64(sizeof(Outcome)), "out has the wrong size");
  return reinterpret_cast<Outcome*>(out.data());
}

template <class T>
void batch(Array<T> K, Array<i64> start, Array<std::int32_t> row, MERCER_PROBLEM, Array<double> linear, double tol,
           i64 max_steps, Output<double> out, std::optional<Output<double>> looks) {
  const Variables v = MERCER_VARIABLES;
  require(K.ndim() == 2 && K.shape(0) == K.shape(1), "K has the wrong shape");
  Batch b{i64(start.size()) - 1, i64(K.shape(0)), start.data(), row.data(), linear.data(), tol, max_steps};
  require(b.count >= 0 && b.start[0] == 0 && b.start[b.count] == v.n, "the problems do not fill the vectors");
  for (i64 p = 0; p < b.count; ++p) require(b.start[p] < b.start[p + 1], "a problem has no points");
  require(i64(row.size()) == v.n && i64(linear.size()) == v.n, "the vectors of a problem differ in length");
  require_within(row, b.matrix);
  const Room room = room_of(looks, b.count);
  b.looks = room.looks;
  b.room = room.each;
  table<Smo<T>>().batch(K.data(), b, v, outcomes(out, b.count));
}

template <class T>
void pair(Array<T> a, Array<T> b, Array<T> across, i64 first, Output<T> rows, MERCER_PROBLEM, Array<double> linear,
          double tol, i64 max_steps, Output<double> out, std::optional<Output<double>> looks) {
  const Variables v = MERCER_VARIABLES;
  require(a.ndim() == 2 && b.ndim() == 2 && across.ndim() == 2, "a block has the wrong shape");
  const Pair<T> p{a.data(), b.data(), across.data() + first, i64(a.shape(0)), i64(b.shape(0)), i64(across.shape(1))};
  require(has_shape(a, {p.n, p.n}) && has_shape(b, {p.m, p.m}) && has_shape(across, {p.n, p.ld}) && first >= 0 &&
              first + p.m <= p.ld && p.n + p.m == v.n,
          "a block has the wrong shape");
  require(i64(rows.size()) >= v.n * v.n && i64(linear.size()) == v.n, "the vectors of a problem differ in length");
  const Room room = room_of(looks, 1);
  *outcomes(out, 1) =
      table<Smo<T>>().pair(p, rows.data(), v, linear.data(), tol, max_steps, room.looks, room.each);
}

Moved select(MERCER_PROBLEM, Array<std::int32_t> hot, Array<std::int32_t> old, i64 fresh, Output<std::int32_t> out) {
  const Variables v = MERCER_VARIABLES;
  require_within(hot, v.n);
  require_within(old, v.n);
  Moved chosen{0, 0.0};
  chosen.first = table<Selection>().select(v, hot.data(), i64(hot.size()), old.data(), i64(old.size()), fresh,
                                           i64(out.size()), out.data(), &chosen.second);
  return chosen;
}

std::tuple<double, double, double> offsets(MERCER_PROBLEM) {
  const Offsets o = table<Selection>().offsets(MERCER_VARIABLES);
  return {o.plus, o.minus, o.gap};
}

template <class T>
void bind_smo(nb::module_& module) {
  module.def("smo", &solve<T>, "K"_array, MERCER_NAMES, "tol"_a, "max_steps"_a, "exact"_a,
             "looks"_array = nb::none(), WithoutGIL());
  module.def("smo_part", &part<T>, "K"_array, "at"_array, MERCER_NAMES, "tol"_a, "max_steps"_a, WithoutGIL());
  module.def("add_rows", &add_rows<T>, "K"_array, "at"_array, "change"_array, "gradient"_array, WithoutGIL());
  module.def("smo_pair", &pair<T>, "a"_array, "b"_array, "across"_array, "first"_a, "rows"_array, MERCER_NAMES,
             "linear"_array, "tol"_a, "max_steps"_a, "out"_array, "looks"_array = nb::none(), WithoutGIL());
  module.def("smo_batch", &batch<T>, "K"_array, "start"_array, "row"_array, MERCER_NAMES, "linear"_array, "tol"_a,
             "max_steps"_a, "out"_array, "looks"_array = nb::none(), WithoutGIL());
}

void bind_selection(nb::module_& module) {
  module.def("select", &select, MERCER_NAMES, "hot"_array, "old"_array, "fresh"_a, "out"_array, WithoutGIL());
  module.def("offsets", &offsets, MERCER_NAMES, WithoutGIL());
}

#undef MERCER_PROBLEM
#undef MERCER_VARIABLES
#undef MERCER_NAMES

// -- linear models ----------------------------------------------------------------------------------------

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
  out.one_target = target.shape(1) == 1;
  out.one_cost = cost.size() == 1;
  require(has_shape(sign, {out.sides, out.n}) && has_shape(target, {out.sides, out.one_target ? 1 : out.n}) &&
              (out.one_cost || i64(cost.size()) == out.n),
          "an array has the wrong shape");
  require(0 <= first && first <= last && last <= out.n && out.n < i64(1) << 31, "rows out of range");
  out.sign = sign.data();
  out.target = target.data();
  out.cost = cost.data();
  out.squared = squared;
  return out;
}

template <class T>
std::tuple<double, double, double, i64> sweep(
    Array<T> x, Array<double> sign, Array<double> target, Array<double> cost, bool squared, i64 first, i64 last,
    Array<double> w, double shift, double half, Output<double> pull, std::optional<Output<double>> alpha,
    std::optional<Output<std::int32_t>> band, std::optional<Output<double>> gram, Array<double> centre,
    Array<double> inverse_scale, i64 thin) {
  const LinearData<T> rows = data<T>(x, sign, target, cost, squared, first, last);
  const i64 width = (rows.d + 8) / 8 * 8;
  require(i64(w.size()) == rows.d && i64(pull.size()) == rows.d + 1, "w or pull has the wrong size");
  require(i64(centre.size()) == rows.d && i64(inverse_scale.size()) == rows.d && thin > 0, "malformed rows");
  require(!alpha || i64(alpha->size()) == rows.n * rows.sides, "alpha has the wrong size");
  require(!band || i64(band->size()) >= last - first, "band has the wrong size");
  require(!gram || i64(gram->size()) == width * width, "gram has the wrong size");
  const auto wanted = [](auto& array) { return array ? array->data() : nullptr; };
  const LinearSweep s{w.data(),     shift,         half,          wanted(alpha),        wanted(band),
                      pull.data(),  wanted(gram),  centre.data(), inverse_scale.data(), thin};
  const LinearSums sums = table<Linear<T>>().sweep(rows, s, first, last);
  return {sums.risk, sums.gain, sums.square, sums.curved};
}

template <class T>
std::tuple<double, double, double, double, double> proof(
    Array<T> x, Array<double> sign, Array<double> target, Array<double> cost, bool squared, i64 first, i64 last,
    Array<double> w, double shift, Array<double> apart, double apart_shift, Array<double> alpha, double unit,
    Output<double> pull) {
  const LinearData<T> rows = data<T>(x, sign, target, cost, squared, first, last);
  require(i64(w.size()) == rows.d && i64(apart.size()) == rows.d && i64(pull.size()) == rows.d + 1,
          "w, apart or pull has the wrong size");
  require(i64(alpha.size()) == rows.n * rows.sides, "alpha has the wrong size");
  const LinearProof p{w.data(), apart.data(), shift, apart_shift, alpha.data(), unit, pull.data()};
  const LinearWorst worst = table<Linear<T>>().proof(rows, p, first, last);
  return {worst.risk, worst.gain, worst.square, worst.violation, worst.apart};
}

template <class T>
void bind_linear(nb::module_& module) {
  module.def("linear_sweep", &sweep<T>, "x"_array, "sign"_array, "target"_array, "cost"_array, "squared"_a, "first"_a,
             "last"_a, "w"_array, "shift"_a, "half"_a, "pull"_array, "alpha"_array.none(), "band"_array.none(),
             "gram"_array.none(), "centre"_array, "inverse_scale"_array, "thin"_a, WithoutGIL());
  module.def("linear_proof", &proof<T>, "x"_array, "sign"_array, "target"_array, "cost"_array, "squared"_a, "first"_a,
             "last"_a, "w"_array, "shift"_a, "apart"_array, "apart_shift"_a, "alpha"_array, "unit"_a, "pull"_array,
             WithoutGIL());
}

// -- ridge regression -------------------------------------------------------------------------------------

using Two = nb::ndim<2>;
using Three = nb::ndim<3>;

void band_product(Array<float, Two> values, i64 first, Array<float, Two> v, Output<double, Two> out) {
  const Band band{values.data(), first, i64(values.shape(0)), i64(values.shape(1))};
  const i64 count = i64(v.shape(0)), stride = i64(v.shape(1));
  require(band.width % 16 == 0 && band.rows <= band.width,
          "a band has rows of a multiple of 16 numbers, at least as many as there are rows");
  require(first >= 0 && first + band.width <= stride && has_shape(out, {count, stride}),
          "v and out have the same shape, and reach at least to the end of the band");
  table<Ridge>().product(band, v.data(), out.data(), count, stride);
}

void resolvent(Array<double, Two> below, Array<double, Two> inverse, Array<double, Three> right, Array<double, Two> q,
               Output<double, Two> squares, Output<double, Three> values) {
  const i64 n = below.shape(0), alphas = below.shape(1), outputs = right.shape(0), rows = q.shape(0);
  require(alphas % 8 == 0 && has_shape(inverse, {n, alphas}) && has_shape(right, {outputs, n, alphas}) &&
              has_shape(q, {rows, n}) && has_shape(squares, {rows, alphas}) &&
              has_shape(values, {outputs, rows, alphas}),
          "the arrays of a path have the wrong shapes, or alphas are no multiple of 8");
  const Path path{below.data(), inverse.data(), right.data(), n, alphas, outputs};
  table<Ridge>().resolvent(path, q.data(), rows, squares.data(), values.data());
}

}  // namespace

void bind_machines(nb::module_& module) {
  bind_smo<float>(module);
  bind_smo<double>(module);
  bind_selection(module);
  bind_linear<float>(module);
  bind_linear<double>(module);
  module.def("band_product", &band_product, "values"_array, "first"_a, "v"_array, "out"_array, WithoutGIL());
  module.def("resolvent", &resolvent, "below"_array, "inverse"_array, "right"_array, "q"_array, "squares"_array,
             "values"_array, WithoutGIL());
}

}  // namespace mercer

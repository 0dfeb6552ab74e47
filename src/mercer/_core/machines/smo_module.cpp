// Python bindings of SMO. Every call releases the GIL and runs on one thread.
#include "../bindings.hpp"

#include "smo.hpp"

namespace mercer {
namespace {

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
void batch(Array<T> K, Array<i64> start, Array<std::int32_t> row, Output<double> gradient, Output<double> plus,
           Output<double> minus, Array<double> upper, Array<double> lower, Array<double> width, int groups,
           Array<double> linear, double tol, i64 max_steps, Output<double> out) {
  const Variables v = variables(gradient, plus, minus, upper, lower, width, groups);
  Batch b;
  b.count = i64(start.size()) - 1;
  b.matrix = K.ndim() == 2 ? i64(K.shape(0)) : -1;
  require(K.ndim() == 2 && K.shape(0) == K.shape(1), "K has the wrong shape");
  require(b.count >= 0 && start.data()[0] == 0 && start.data()[b.count] == v.n, "the problems do not fill the vectors");
  for (i64 p = 0; p < b.count; ++p) require(start.data()[p] < start.data()[p + 1], "a problem has no points");
  require(i64(row.size()) == v.n && i64(linear.size()) == v.n, "the vectors of a problem differ in length");
  for (i64 i = 0; i < v.n; ++i) require(row.data()[i] >= 0 && row.data()[i] < b.matrix, "a point is out of range");
  require(i64(out.size()) * i64(sizeof(double)) == b.count * i64(sizeof(Outcome)), "out has the wrong size");
  b.start = start.data();
  b.row = row.data();
  b.linear = linear.data();
  b.tol = tol;
  b.max_steps = max_steps;
  const T* k = K.data();
  const Smo<T>* smo;
  if constexpr (sizeof(T) == 4) smo = tables.single;
  else smo = tables.wide;
  auto* outcomes = reinterpret_cast<Outcome*>(out.data());
  nb::gil_scoped_release release;
  smo->batch(k, b, v, outcomes);
}

template <class T>
void pair(Array<T> a, Array<T> b, Array<T> across, i64 first, Output<T> rows, Output<double> gradient, Output<double> plus,
          Output<double> minus, Array<double> upper, Array<double> lower, Array<double> width, int groups,
          Array<double> linear, double tol, i64 max_steps, Output<double> out) {
  const Variables v = variables(gradient, plus, minus, upper, lower, width, groups);
  require(a.ndim() == 2 && b.ndim() == 2 && across.ndim() == 2, "a block has the wrong shape");
  Pair<T> p{a.data(), b.data(), across.data() + first, i64(a.shape(0)), i64(b.shape(0)), i64(across.shape(1))};
  require(i64(a.shape(1)) == p.n && i64(b.shape(1)) == p.m && i64(across.shape(0)) == p.n && first >= 0 &&
              first + p.m <= p.ld && p.n + p.m == v.n,
          "a block has the wrong shape");
  require(i64(rows.size()) >= v.n * v.n && i64(linear.size()) == v.n, "the vectors of a problem differ in length");
  require(i64(out.size()) * i64(sizeof(double)) == i64(sizeof(Outcome)), "out has the wrong size");
  T* room = rows.data();
  const double* q = linear.data();
  auto* outcome = reinterpret_cast<Outcome*>(out.data());
  const Smo<T>* smo;
  if constexpr (sizeof(T) == 4) smo = tables.single;
  else smo = tables.wide;
  nb::gil_scoped_release release;
  *outcome = smo->pair(p, room, v, q, tol, max_steps);
}

template <class T>
const Smo<T>& table() {
  if constexpr (sizeof(T) == 4) return *tables.single;
  else return *tables.wide;
}

void require_places(const Array<std::int32_t>& at, i64 n) {
  for (std::size_t k = 0; k < at.size(); ++k)
    require(at.data()[k] >= 0 && at.data()[k] < n && (k == 0 || at.data()[k - 1] < at.data()[k]),
            "the points are out of range, or not in ascending order");
}

template <class T>
nb::tuple part(Array<T> K, Array<std::int32_t> at, Output<double> gradient, Output<double> plus, Output<double> minus,
               Array<double> upper, Array<double> lower, Array<double> width, int groups, double tol, i64 max_steps) {
  const Variables v = variables(gradient, plus, minus, upper, lower, width, groups);
  require(K.ndim() == 2 && K.shape(0) == K.shape(1) && i64(K.shape(0)) == v.n, "K has the wrong shape");
  require_places(at, v.n);
  const T* k = K.data();
  const std::int32_t* places = at.data();
  const i64 count = at.size();
  Steps steps;
  {
    nb::gil_scoped_release release;
    steps = table<T>().part(k, v, places, count, tol, max_steps);
  }
  return nb::make_tuple(steps.count, steps.violation);
}

template <class T>
void add_rows(Array<T> K, Array<std::int32_t> at, Array<double> change, Output<double> gradient) {
  const i64 n = gradient.size(), count = at.size();
  require(K.ndim() == 2 && i64(K.shape(0)) == n && i64(K.shape(1)) == n, "K has the wrong shape");
  require(i64(change.size()) == count, "the vectors of a problem differ in length");
  require_places(at, n);
  const T* k = K.data();
  const std::int32_t* places = at.data();
  const double* by = change.data();
  double* to = gradient.data();
  nb::gil_scoped_release release;
  table<T>().add_rows(k, n, places, by, count, to);
}

template <class T>
void bind_solve(nb::module_& module) {
  module.def("smo_part", &part<T>, "K"_a.noconvert(), "at"_a.noconvert(), "gradient"_a.noconvert(), "plus"_a.noconvert(),
             "minus"_a.noconvert(), "upper"_a.noconvert(), "lower"_a.noconvert(), "width"_a.noconvert(), "groups"_a,
             "tol"_a, "max_steps"_a);
  module.def("add_rows", &add_rows<T>, "K"_a.noconvert(), "at"_a.noconvert(), "change"_a.noconvert(),
             "gradient"_a.noconvert());
  module.def("smo", &solve<T>, "K"_a.noconvert(), "gradient"_a.noconvert(), "plus"_a.noconvert(), "minus"_a.noconvert(),
             "upper"_a.noconvert(), "lower"_a.noconvert(), "width"_a.noconvert(), "groups"_a, "tol"_a, "max_steps"_a,
             "exact"_a);
  module.def("smo_pair", &pair<T>, "a"_a.noconvert(), "b"_a.noconvert(), "across"_a.noconvert(), "first"_a,
             "rows"_a.noconvert(), "gradient"_a.noconvert(), "plus"_a.noconvert(), "minus"_a.noconvert(),
             "upper"_a.noconvert(), "lower"_a.noconvert(), "width"_a.noconvert(), "groups"_a, "linear"_a.noconvert(),
             "tol"_a, "max_steps"_a, "out"_a.noconvert());
  module.def("smo_batch", &batch<T>, "K"_a.noconvert(), "start"_a.noconvert(), "row"_a.noconvert(),
             "gradient"_a.noconvert(), "plus"_a.noconvert(), "minus"_a.noconvert(), "upper"_a.noconvert(),
             "lower"_a.noconvert(), "width"_a.noconvert(), "groups"_a, "linear"_a.noconvert(), "tol"_a, "max_steps"_a,
             "out"_a.noconvert());
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

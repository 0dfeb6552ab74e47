// Python bindings of what ridge regression asks of the core. A call releases the GIL and runs on one thread.
#include "../bindings.hpp"

#include <initializer_list>

#include "ridge.hpp"

namespace mercer {
namespace {

template <class T>
using Matrix = nb::ndarray<T, nb::numpy, nb::device::cpu, nb::c_contig, nb::ndim<2>>;

template <class T>
using Block = nb::ndarray<T, nb::numpy, nb::device::cpu, nb::c_contig, nb::ndim<3>>;

const Ridge* chosen = nullptr;

void band_product(Matrix<const float> values, i64 first, Matrix<const float> v, Matrix<double> out) {
  const Band band{values.data(), first, i64(values.shape(0)), i64(values.shape(1))};
  const i64 stride = i64(v.shape(1));
  if (band.width % 16 || band.rows > band.width)
    throw std::invalid_argument("a band has rows of a multiple of 16 numbers, at least as many as there are rows");
  if (first < 0 || first + band.width > stride || i64(out.shape(1)) != stride || out.shape(0) != v.shape(0))
    throw std::invalid_argument("v and out have the same shape, and reach at least to the end of the band");
  nb::gil_scoped_release release;
  chosen->product(band, v.data(), out.data(), i64(v.shape(0)), stride);
}

void resolvent(Matrix<const double> below, Matrix<const double> inverse, Block<const double> right,
               Matrix<const double> q, Matrix<double> squares, Block<double> values) {
  Path path;
  path.n = i64(below.shape(0));
  path.alphas = i64(below.shape(1));
  path.outputs = i64(right.shape(0));
  path.below = below.data();
  path.inverse = inverse.data();
  path.right = right.data();
  const i64 rows = i64(q.shape(0));
  const auto same = [](auto& array, std::initializer_list<i64> shape) {
    std::size_t k = 0;
    for (const i64 size : shape)
      if (i64(array.shape(k++)) != size) return false;
    return true;
  };
  if (path.alphas % 8 || !same(inverse, {path.n, path.alphas}) || !same(right, {path.outputs, path.n, path.alphas}) ||
      !same(q, {rows, path.n}) || !same(squares, {rows, path.alphas}) ||
      !same(values, {path.outputs, rows, path.alphas}))
    throw std::invalid_argument("the arrays of a path have the wrong shapes, or alphas are no multiple of 8");
  nb::gil_scoped_release release;
  chosen->resolvent(path, q.data(), rows, squares.data(), values.data());
}

}  // namespace

void bind_ridge(nb::module_& module, [[maybe_unused]] const std::string& isa) {
  chosen = &ridge_baseline();
#if defined(MERCER_X86_DISPATCH)
  if (isa == "avx512") chosen = &ridge_avx512();
  if (isa == "avx2") chosen = &ridge_avx2();
#endif
  module.def("band_product", &band_product, "values"_a.noconvert(), "first"_a, "v"_a.noconvert(),
             "out"_a.noconvert());
  module.def("resolvent", &resolvent, "below"_a.noconvert(), "inverse"_a.noconvert(), "right"_a.noconvert(),
             "q"_a.noconvert(), "squares"_a.noconvert(), "values"_a.noconvert());
}

}  // namespace mercer

// Python bindings of the engine: jobs on NumPy arrays.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace mercer {
namespace {

// Whether inner products of coarse points are at hand (see Operand).
bool has_coarse() {
#if defined(MERCER_X86_DISPATCH)
  return isa() == "avx512" && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

template <class T>
i64 whole_panels(i64 points) {
  const i64 panel = table<Engine<T>>().panel;
  return (points + panel - 1) / panel * panel;
}

template <class T>
class PyJob {
 public:
  // code: rows (op, dst, a, b); constants: rows (c, e, p); operands: (kind, d, left, right, weight or None, window,
  // (left norms, right norms, the largest) or None), where a dense left is an (n, d) array and its right a packed one,
  // and both sides of sparse points are `Rows`, their norms in double and followed by the share `near`. A left side
  // with few nonzeros may be `Rows` while the right one is packed. Inner products with (left units, right units) in place
  // of the norms are those of coarse points.
  PyJob(const std::vector<std::vector<int>>& code, const std::vector<std::vector<double>>& constants, int registers,
        int result, nb::list operands, nb::list rows, nb::list cols, i64 n, i64 m) {
    constexpr i64 most = i64(1) << 48;  // far beyond memory; keeps sizes from overflowing
    require(0 <= n && n < most && 0 <= m && m < most, "a number of points is out of range");
    job_.n = n;
    job_.m = m;
    for (nb::handle h : operands) job_.operands.push_back(operand(nb::cast<nb::tuple>(h)));
    for (nb::handle h : rows) job_.rows.push_back(hold<T>(h, n));
    for (nb::handle h : cols) job_.cols.push_back(hold<T>(h, m));
    read_program(code, constants, registers, result);
  }

  bool dense(i64 r0, i64 r1, i64 c0, i64 c1, Output<T> out) const {
    require(out.ndim() == 2 && i64(out.shape(0)) == r1 - r0 && i64(out.shape(1)) == c1 - c0, "out has the wrong shape");
    check(r0, r1, c0, c1);
    return table<Engine<T>>().dense(job_, r0, r1, c0, c1, out.data(), c1 - c0);
  }

  bool dense_symmetric(i64 r0, i64 r1, Output<T> out) const {
    require(job_.n == job_.m && out.ndim() == 2 && i64(out.shape(0)) == job_.n && i64(out.shape(1)) == job_.n,
            "out has the wrong shape");
    check(r0, r1, 0, job_.m);
    return table<Engine<T>>().dense_symmetric(job_, r0, r1, out.data());
  }

  void matvec(i64 r0, i64 r1, Array<T> v, Output<double> out) const {
    require(v.ndim() == 2 && out.ndim() == 2 && i64(v.shape(0)) == job_.m && i64(out.shape(0)) == r1 - r0 &&
                out.shape(1) == v.shape(1),
            "v or out has the wrong shape");
    check(r0, r1, 0, job_.m);
    table<Engine<T>>().matvec(job_, r0, r1, v.data(), i64(v.shape(1)), out.data());
  }

  void matvec_symmetric(i64 first, i64 step, Array<T> v, Output<double> out) const {
    require(job_.n == job_.m && v.ndim() == 2 && out.ndim() == 2 && i64(v.shape(0)) == job_.m &&
                i64(out.shape(0)) == job_.n && out.shape(1) == v.shape(1),
            "v or out has the wrong shape");
    constexpr i64 most = 1 << 30;
    require(0 <= first && first <= most && 0 < step && step <= most, "bands outside the job");
    table<Engine<T>>().matvec_symmetric(job_, first, step, v.data(), i64(v.shape(1)), out.data());
  }

 private:
  void check(i64 r0, i64 r1, i64 c0, i64 c1) const {
    require(0 <= r0 && r0 <= r1 && r1 <= job_.n && 0 <= c0 && c0 <= c1 && c1 <= job_.m, "range outside the job");
  }

  // Every index in range, every register written before it is read: the engine relies on both.
  void read_program(const std::vector<std::vector<int>>& code, const std::vector<std::vector<double>>& constants,
                    int registers, int result) {
    const int most = static_cast<int>(code.size());
    require(code.size() == constants.size() && result >= 0 && result < registers && registers <= most,
            "malformed program");
    std::vector<bool> written(static_cast<std::size_t>(registers), false);
    const auto at_hand = [&](int r) { return r >= 0 && r < registers && written[static_cast<std::size_t>(r)]; };
    for (std::size_t i = 0; i < code.size(); ++i) {
      require(code[i].size() == 4 && constants[i].size() == 3, "malformed program");
      const int number = code[i][0], dst = code[i][1], a = code[i][2], b = code[i][3];
      const auto op = static_cast<Op>(number);
      require(number >= 0 && op <= Op::outer && dst >= 0 && dst < registers && b >= 0, "malformed program");
      if (op == Op::outer) {  // b and p are numbers of vectors
        const double p = constants[i][2];
        require(static_cast<std::size_t>(b) < job_.rows.size() && p >= 0 && p < double(job_.cols.size()),
                "malformed program");
      } else {
        require(b < registers, "malformed program");
      }
      if (op <= Op::col) {
        const std::size_t sources = op == Op::stat  ? job_.operands.size()
                                    : op == Op::row ? job_.rows.size()
                                                    : job_.cols.size();
        require(a >= 0 && static_cast<std::size_t>(a) < sources, "malformed program");
      } else {
        const bool two = op <= Op::atan2 || (op >= Op::exp_add && op <= Op::damp_add);
        require(at_hand(a) && (!two || at_hand(b)), "malformed program");
      }
      require((op != Op::powi && op != Op::powi_add) || std::abs(constants[i][2]) <= 1024, "malformed program");  // a NaN fails too
      written[static_cast<std::size_t>(dst)] = true;
      job_.program.code.push_back({op, dst, a, b, constants[i][0], constants[i][1], constants[i][2]});
    }
    require(at_hand(result), "malformed program");
    job_.program.registers = registers;
    job_.program.result = result;
  }

  // Keep the array alive as long as the job and check that it has at least `count` times `width` entries. It is
  // never converted: the copy would be gone before the job is run.
  template <class S>
  const S* hold(nb::handle h, i64 count, i64 width = 1) {
    Array<S> array;
    require(nb::try_cast(h, array, false), "an array of a job has the wrong type or is not contiguous");
    require(i64(array.size()) / width >= count, "an array is too short for its job");
    held_.push_back(nb::borrow(h));
    return array.data();
  }

  const PyRows<T>& rows(nb::handle h, i64 count, i64 d) {
    const auto& found = nb::cast<const PyRows<T>&>(h);
    require(found.size() >= count && found.width() == d, "malformed operand");
    held_.push_back(nb::borrow(h));
    return found;
  }

  Operand<T> operand(nb::tuple t) {
    Operand<T> o;
    require(t.size() == 7, "malformed operand");
    o.kind = static_cast<Stat>(nb::cast<int>(t[0]));
    o.d = nb::cast<i64>(t[1]);
    require(o.kind >= Stat::dot && o.kind <= Stat::sqsum && o.d > 0, "malformed operand");
    if (!t[4].is_none()) o.weight = hold<T>(t[4], o.d);
    const auto window = nb::cast<std::pair<double, double>>(t[5]);
    o.low = static_cast<T>(window.first);
    o.high = static_cast<T>(window.second);
    o.sparse = nb::isinstance<PyRows<T>>(t[3]);
    if (o.sparse) {
      const PyRows<T>& right = rows(t[3], job_.m, o.d);
      o.xs = rows(t[2], job_.n, o.d).get();
      o.zs = right.get();
      o.zc = right.columns();
      if (!t[6].is_none()) {
        const auto norms = nb::cast<nb::tuple>(t[6]);
        require(norms.size() == 4 && o.kind == Stat::sqdist && !o.weight, "malformed operand");
        o.x_squares = hold<double>(norms[0], job_.n);
        o.z_squares = hold<double>(norms[1], job_.m);
        o.reach = 4.01 * nb::cast<double>(norms[2]);
        o.near = nb::cast<double>(norms[3]);
      }
    } else {
      o.thin = nb::isinstance<PyRows<T>>(t[2]);
      if (o.thin) {
        const bool products = o.kind == Stat::dot || (o.kind == Stat::sqdist && !t[6].is_none());
        require(products, "malformed operand");
        o.xs = rows(t[2], job_.n, o.d).get();
      } else {
        o.x = hold<T>(t[2], job_.n, o.d);
      }
      o.z = hold<T>(t[3], whole_panels<T>(job_.m), o.d);
      if (!t[6].is_none() && o.kind == Stat::dot) {
        const auto units = nb::cast<nb::tuple>(t[6]);
        require(units.size() == 2 && sizeof(T) == 4 && !o.thin && has_coarse(), "malformed operand");
        o.x_unit = hold<T>(units[0], job_.n);
        o.z_unit = hold<T>(units[1], whole_panels<T>(job_.m));
      } else if (!t[6].is_none()) {
        const auto norms = nb::cast<nb::tuple>(t[6]);
        require(norms.size() == 3 && o.kind == Stat::sqdist && !o.weight, "malformed operand");
        o.x_norms = hold<T>(norms[0], job_.n);
        o.z_norms = hold<T>(norms[1], whole_panels<T>(job_.m));
        o.reach = 4.01 * nb::cast<double>(norms[2]);
      }
    }
    return o;
  }

  Job<T> job_;
  std::vector<nb::object> held_;
};

template <class T>
void pack(Array<T> z, Output<T> out) {
  require(z.ndim() == 2 && i64(out.size()) == whole_panels<T>(z.shape(0)) * i64(z.shape(1)), "out has the wrong size");
  table<Engine<T>>().pack(z.data(), i64(z.shape(0)), i64(z.shape(1)), out.data());
}

template <class T>
double extent(Array<T> x) {
  return static_cast<double>(table<Engine<T>>().extent(x.data(), static_cast<i64>(x.size())));
}

// Of all entries together, from their mean.
template <class T>
double variance(Array<T> x) {
  constexpr std::size_t lanes = 8;  // sums side by side, for speed and for accuracy
  const std::size_t size = x.size(), whole = size / lanes * lanes;
  const T* from = x.data();
  const auto mean_of = [&](auto term) {
    double sums[lanes] = {};
    for (std::size_t i = 0; i < whole; i += lanes)
      for (std::size_t j = 0; j < lanes; ++j) sums[j] += term(static_cast<double>(from[i + j]));
    for (std::size_t i = whole; i < size; ++i) sums[0] += term(static_cast<double>(from[i]));
    double total = 0;
    for (const double s : sums) total += s;
    return total / static_cast<double>(size);
  };
  const double mean = mean_of([](double v) { return v; });
  return mean_of([=](double v) { return (v - mean) * (v - mean); });
}

template <class T>
void norms(Array<T> x, i64 chunk, Output<T> out) {
  require(x.ndim() == 2 && out.size() >= x.shape(0), "out has the wrong size");
  require(chunk > 0, "a chunk has at least one coordinate");
  table<Engine<T>>().norms(x.data(), i64(x.shape(0)), i64(x.shape(1)), chunk, out.data());
}

template <class T>
void bind(nb::module_& module, const char* name, const char* rows_name) {
  nb::class_<PyRows<T>>(module, rows_name)
      .def(nb::init<Array<T>, Array<std::int32_t>, Array<i64>, i64>(), "data"_array, "index"_array,
           "start"_array, "d"_a)
      .def(nb::init<Array<T>>(), "x"_array)
      .def(nb::init<const PyRows<T>&, Array<i64>>(), "rows"_a, "chosen"_array)
      .def("list_columns", &PyRows<T>::list_columns)
      .def("norms", &PyRows<T>::norms, "out"_array)
      .def_prop_ro("nonzeros", &PyRows<T>::nonzeros)
      .def_prop_ro("longest", &PyRows<T>::longest);
  nb::class_<PyJob<T>>(module, name)
      .def(nb::init<const std::vector<std::vector<int>>&, const std::vector<std::vector<double>>&, int, int, nb::list, nb::list,
                    nb::list, i64, i64>(),
           "code"_a, "constants"_a, "registers"_a, "result"_a, "operands"_a, "rows"_a, "cols"_a, "n"_a, "m"_a)
      .def("dense", &PyJob<T>::dense, "r0"_a, "r1"_a, "c0"_a, "c1"_a, "out"_array, WithoutGIL())
      .def("dense_symmetric", &PyJob<T>::dense_symmetric, "r0"_a, "r1"_a, "out"_array, WithoutGIL())
      .def("matvec", &PyJob<T>::matvec, "r0"_a, "r1"_a, "v"_array, "out"_array, WithoutGIL())
      .def("matvec_symmetric", &PyJob<T>::matvec_symmetric, "first"_a, "step"_a, "v"_array, "out"_array,
           WithoutGIL());
  module.def("extent", &extent<T>, "x"_array);
  module.def("variance", &variance<T>, "x"_array);
  module.def("pack", &pack<T>, "z"_array, "out"_array, WithoutGIL());
  module.def("norms", &norms<T>, "x"_array, "chunk"_a, "out"_array, WithoutGIL());
}

}  // namespace

void bind_engine(nb::module_& module) {
  bind<float>(module, "JobFloat32", "RowsFloat32");
  bind<double>(module, "JobFloat64", "RowsFloat64");
  module.def("has_coarse", &has_coarse, "Whether inner products of coarse points are at hand.");
  module.def("panel", [](bool single) { return single ? table<Engine<float>>().panel : table<Engine<double>>().panel; }, "single"_a);
  module.def("chunk", [](i64 d, bool single) { return (single ? table<Engine<float>>().chunk : table<Engine<double>>().chunk)(d); },
             "d"_a, "single"_a);
  module.attr("STATS") = nb::make_tuple("dot", "sqdist", "l1", "chi2", "minimum", "sqsum");
  module.attr("OPS") =
      nb::make_tuple("stat", "row", "col", "add", "sub", "mul", "div", "min", "max", "atan2", "affine", "exp", "log",
                     "log1p", "sqrt", "tanh", "iszero", "rdiv", "lower", "upper", "powi", "powc", "damp", "exp_add", "powi_add", "damp_add", "outer");
  module.attr("BAND") = table<Engine<float>>().band;
}

}  // namespace mercer

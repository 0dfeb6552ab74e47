// Python bindings: jobs on NumPy arrays. Every call that computes releases the GIL and runs on one thread.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "engine/engine.hpp"
#include "sequences/names.hpp"

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

const std::string& isa() {
  static const std::string name = choose_isa();
  return name;
}

// Whether inner products of coarse points are at hand (see Operand).
bool has_coarse() {
#if defined(MERCER_X86_DISPATCH)
  return isa() == "avx512" && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

template <class T>
const Engine<T>& engine() {
#if defined(MERCER_X86_DISPATCH)
  if (isa() == "avx512") return engine_avx512<T>();
  if (isa() == "avx2") return engine_avx2<T>();
#endif
  return engine_baseline<T>();
}

// Compressed rows, checked once: their own, made of the nonzeros of a matrix, or those of arrays that are kept alive.
template <class T>
class PyRows {
 public:
  PyRows(Array<T> data, Array<std::int32_t> index, Array<i64> start, i64 d) : d_(d), held_{data, index, start} {
    require(start.size() > 0 && 0 < d && d < i64(1) << 31, "malformed sparse rows");
    n_ = i64(start.size()) - 1;
    rows_ = {data.data(), index.data(), start.data()};
    bool sound = rows_.start[0] >= 0;
    for (i64 i = 0; i < n_; ++i) sound &= rows_.start[i] <= rows_.start[i + 1];
    require(sound && rows_.start[n_] <= i64(data.size()) && rows_.start[n_] <= i64(index.size()),
            "malformed sparse rows");
    for (i64 i = rows_.start[0]; i < rows_.start[n_]; ++i) sound &= rows_.index[i] >= 0 && rows_.index[i] < d;
    require(sound, "malformed sparse rows");
  }

  explicit PyRows(Array<T> x) {
    require(x.ndim() == 2 && x.shape(1) > 0 && i64(x.shape(1)) < i64(1) << 31, "malformed sparse rows");
    n_ = x.shape(0);
    d_ = x.shape(1);
    const T* from = x.data();
    start_.reserve(n_ + 1);
    start_.push_back(0);
    i64 size = 0;
    for (i64 i = 0; i < n_; ++i, from += d_) {
      data_.resize(std::max<std::size_t>(size + d_, data_.size()));
      index_.resize(data_.size());
      for (i64 k = 0; k < d_; ++k) {  // written whether or not it counts: a branch would often be mispredicted
        data_[size] = from[k];
        index_[size] = static_cast<std::int32_t>(k);
        size += from[k] != 0;
      }
      if (data_.size() < std::size_t(size + d_)) data_.resize(2 * (size + d_)), index_.resize(data_.size());
      start_.push_back(size);
    }
    data_.resize(size);
    index_.resize(size);
    rows_ = {data_.data(), index_.data(), start_.data()};
  }

  // Some of the rows, in the order given.
  PyRows(const PyRows& all, Array<i64> chosen) : n_(chosen.size()), d_(all.d_) {
    start_.reserve(n_ + 1);
    start_.push_back(0);
    for (i64 i = 0; i < n_; ++i) {
      const i64 r = chosen.data()[i];
      require(0 <= r && r < all.n_, "a row outside the rows");
      const i64 a = all.rows_.start[r], b = all.rows_.start[r + 1];
      data_.insert(data_.end(), all.rows_.data + a, all.rows_.data + b);
      index_.insert(index_.end(), all.rows_.index + a, all.rows_.index + b);
      start_.push_back(i64(data_.size()));
    }
    rows_ = {data_.data(), index_.data(), start_.data()};
  }
  PyRows(const PyRows&) = delete;

  i64 size() const { return n_; }
  i64 width() const { return d_; }
  i64 nonzeros() const { return rows_.start[n_] - rows_.start[0]; }
  i64 longest() const {
    i64 most = 0;
    for (i64 i = 0; i < n_; ++i) most = std::max(most, rows_.start[i + 1] - rows_.start[i]);
    return most;
  }
  const Sparse<T>& get() const { return rows_; }
  const Columns<T>& columns() const { return columns_; }

  // Keep the entries by column, too.
  void list_columns() {
    constexpr std::int32_t beyond = std::numeric_limits<std::int32_t>::max();
    if (columns_.start) return;
    require(n_ < beyond, "too many rows for lists by column");
    list_start_.assign(d_ + 1, 0);
    for (i64 a = rows_.start[0]; a < rows_.start[n_]; ++a) ++list_start_[rows_.index[a] + 1];
    for (i64 j = 0; j < d_; ++j) list_start_[j + 1] += list_start_[j] + 1;
    list_data_.assign(nonzeros() + d_, T(0));
    list_row_.assign(nonzeros() + d_, beyond);
    std::vector<i64> next(list_start_.begin(), list_start_.end() - 1);
    for (i64 i = 0; i < n_; ++i)
      for (i64 a = rows_.start[i]; a < rows_.start[i + 1]; ++a) {
        const i64 k = next[rows_.index[a]]++;
        list_data_[k] = rows_.data[a];
        list_row_[k] = static_cast<std::int32_t>(i);
      }
    fill_columns();
    columns_ = {list_data_.data(), list_row_.data(), list_start_.data(), full_number_.data(), full_.data(), n_};
  }

  void norms(Output<double> out) const {
    require(i64(out.size()) == n_, "out has the wrong size");
    engine<T>().sparse_norms(rows_, n_, out.data());
  }

 private:
  // Keep columns with their zeros, too, where these are few enough that a vector at a time is faster than a row at a time
  // (an eighth, by measurement): the fullest ones, no more numbers in all than there are nonzeros.
  void fill_columns() {
    const auto entries = [&](std::int32_t j) { return list_start_[j + 1] - list_start_[j] - 1; };
    std::vector<std::int32_t> chosen;
    for (i64 j = 0; j < d_; ++j)
      if (const auto column = static_cast<std::int32_t>(j); n_ && entries(column) * 8 >= n_) chosen.push_back(column);
    const i64 most = n_ ? nonzeros() / n_ : 0;
    if (i64(chosen.size()) > most) {
      std::nth_element(chosen.begin(), chosen.begin() + most, chosen.end(),
                       [&](std::int32_t a, std::int32_t b) { return entries(a) > entries(b); });
      chosen.resize(most);
    }
    full_number_.assign(d_, -1);
    full_.assign(chosen.size() * n_, 0.0);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      full_number_[chosen[i]] = static_cast<std::int32_t>(i);
      for (i64 k = list_start_[chosen[i]]; k + 1 < list_start_[chosen[i] + 1]; ++k)
        full_[i * n_ + list_row_[k]] = list_data_[k];
    }
  }

  i64 n_ = 0, d_ = 0;
  Sparse<T> rows_;
  Columns<T> columns_;
  std::vector<T> list_data_;
  std::vector<std::int32_t> list_row_;
  std::vector<i64> list_start_;
  std::vector<std::int32_t> full_number_;
  std::vector<double> full_;
  std::vector<T> data_;
  std::vector<std::int32_t> index_;
  std::vector<i64> start_;
  std::tuple<Array<T>, Array<std::int32_t>, Array<i64>> held_;
};

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
    T* to = out.data();
    nb::gil_scoped_release release;
    return engine<T>().dense(job_, r0, r1, c0, c1, to, c1 - c0);
  }

  bool dense_symmetric(i64 r0, i64 r1, Output<T> out) const {
    require(job_.n == job_.m && out.ndim() == 2 && i64(out.shape(0)) == job_.n && i64(out.shape(1)) == job_.n,
            "out has the wrong shape");
    check(r0, r1, 0, job_.m);
    T* to = out.data();
    nb::gil_scoped_release release;
    return engine<T>().dense_symmetric(job_, r0, r1, to);
  }

  void matvec(i64 r0, i64 r1, Array<T> v, Output<double> out) const {
    require(v.ndim() == 2 && out.ndim() == 2 && i64(v.shape(0)) == job_.m && i64(out.shape(0)) == r1 - r0 &&
                out.shape(1) == v.shape(1),
            "v or out has the wrong shape");
    check(r0, r1, 0, job_.m);
    const T* from = v.data();
    double* to = out.data();
    const i64 k = v.shape(1);
    nb::gil_scoped_release release;
    engine<T>().matvec(job_, r0, r1, from, k, to);
  }

  void matvec_symmetric(i64 first, i64 step, Array<T> v, Output<double> out) const {
    require(job_.n == job_.m && v.ndim() == 2 && out.ndim() == 2 && i64(v.shape(0)) == job_.m &&
                i64(out.shape(0)) == job_.n && out.shape(1) == v.shape(1),
            "v or out has the wrong shape");
    constexpr i64 most = 1 << 30;
    require(0 <= first && first <= most && 0 < step && step <= most, "bands outside the job");
    const T* from = v.data();
    double* to = out.data();
    const i64 k = v.shape(1);
    nb::gil_scoped_release release;
    engine<T>().matvec_symmetric(job_, first, step, from, k, to);
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
      const i64 panel = engine<T>().panel;
      o.thin = nb::isinstance<PyRows<T>>(t[2]);
      if (o.thin) {
        const bool products = o.kind == Stat::dot || (o.kind == Stat::sqdist && !t[6].is_none());
        require(products, "malformed operand");
        o.xs = rows(t[2], job_.n, o.d).get();
      } else {
        o.x = hold<T>(t[2], job_.n, o.d);
      }
      o.z = hold<T>(t[3], (job_.m + panel - 1) / panel * panel, o.d);
      if (!t[6].is_none() && o.kind == Stat::dot) {
        const auto units = nb::cast<nb::tuple>(t[6]);
        require(units.size() == 2 && sizeof(T) == 4 && !o.thin && has_coarse(), "malformed operand");
        o.x_unit = hold<T>(units[0], job_.n);
        o.z_unit = hold<T>(units[1], (job_.m + panel - 1) / panel * panel);
      } else if (!t[6].is_none()) {
        const auto norms = nb::cast<nb::tuple>(t[6]);
        require(norms.size() == 3 && o.kind == Stat::sqdist && !o.weight, "malformed operand");
        o.x_norms = hold<T>(norms[0], job_.n);
        o.z_norms = hold<T>(norms[1], (job_.m + panel - 1) / panel * panel);
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
  const i64 panel = engine<T>().panel;
  require(z.ndim() == 2 && i64(out.size()) == (i64(z.shape(0)) + panel - 1) / panel * panel * i64(z.shape(1)),
          "out has the wrong size");
  const T* from = z.data();
  T* to = out.data();
  const i64 m = z.shape(0), d = z.shape(1);
  nb::gil_scoped_release release;
  engine<T>().pack(from, m, d, to);
}

template <class T>
double extent(Array<T> x) {
  return static_cast<double>(engine<T>().extent(x.data(), static_cast<i64>(x.size())));
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
  const T* from = x.data();
  T* to = out.data();
  const i64 n = x.shape(0), d = x.shape(1);
  nb::gil_scoped_release release;
  engine<T>().norms(from, n, d, chunk, to);
}

template <class T>
void bind(nb::module_& module, const char* name, const char* rows_name) {
  nb::class_<PyRows<T>>(module, rows_name)
      .def(nb::init<Array<T>, Array<std::int32_t>, Array<i64>, i64>(), "data"_a.noconvert(), "index"_a.noconvert(),
           "start"_a.noconvert(), "d"_a)
      .def(nb::init<Array<T>>(), "x"_a.noconvert())
      .def(nb::init<const PyRows<T>&, Array<i64>>(), "rows"_a, "chosen"_a.noconvert())
      .def("list_columns", &PyRows<T>::list_columns)
      .def("norms", &PyRows<T>::norms, "out"_a.noconvert())
      .def_prop_ro("nonzeros", &PyRows<T>::nonzeros)
      .def_prop_ro("longest", &PyRows<T>::longest);
  nb::class_<PyJob<T>>(module, name)
      .def(nb::init<const std::vector<std::vector<int>>&, const std::vector<std::vector<double>>&, int, int, nb::list, nb::list,
                    nb::list, i64, i64>(),
           "code"_a, "constants"_a, "registers"_a, "result"_a, "operands"_a, "rows"_a, "cols"_a, "n"_a, "m"_a)
      .def("dense", &PyJob<T>::dense, "r0"_a, "r1"_a, "c0"_a, "c1"_a, "out"_a.noconvert())
      .def("dense_symmetric", &PyJob<T>::dense_symmetric, "r0"_a, "r1"_a, "out"_a.noconvert())
      .def("matvec", &PyJob<T>::matvec, "r0"_a, "r1"_a, "v"_a.noconvert(), "out"_a.noconvert())
      .def("matvec_symmetric", &PyJob<T>::matvec_symmetric, "first"_a, "step"_a, "v"_a.noconvert(),
           "out"_a.noconvert());
  module.def("extent", &extent<T>, "x"_a.noconvert());
  module.def("variance", &variance<T>, "x"_a.noconvert());
  module.def("pack", &pack<T>, "z"_a.noconvert(), "out"_a.noconvert());
  module.def("norms", &norms<T>, "x"_a.noconvert(), "chunk"_a, "out"_a.noconvert());
}

i64 ranks_of(const Array<i64>& names, Output<std::int32_t> ranks) {
  const i64 size = i64(names.size());
  require(i64(ranks.size()) == size, "ranks have the wrong size");
  require(size < std::numeric_limits<std::int32_t>::max(), "too many names");
  nb::gil_scoped_release release;
  return rank_names(names.data(), size, ranks.data());
}

}  // namespace
}  // namespace mercer

NB_MODULE(_core, module) {
  using namespace mercer;
  module.doc() = "Blocks of kernel values: pair statistics, formula programs, products with vectors.";
  bind<float>(module, "JobFloat32", "RowsFloat32");
  bind<double>(module, "JobFloat64", "RowsFloat64");
  bind_smo(module, isa());
  bind_linear(module, isa());
  bind_ridge(module, isa());
  bind_strings(module, isa());
  bind_paths(module);
  module.def("rank_names", &ranks_of, "names"_a.noconvert(), "ranks"_a.noconvert(),
             "Rank names among those that occur, and return how many there are.");
  module.def("isa", [] { return isa(); }, "The instruction set in use.");
  module.def("has_coarse", &has_coarse, "Whether inner products of coarse points are at hand.");
  module.def("panel", [](bool single) { return single ? engine<float>().panel : engine<double>().panel; }, "single"_a);
  module.def("chunk", [](i64 d, bool single) { return (single ? engine<float>().chunk : engine<double>().chunk)(d); },
             "d"_a, "single"_a);
  module.attr("STATS") = nb::make_tuple("dot", "sqdist", "l1", "chi2", "minimum", "sqsum");
  module.attr("OPS") =
      nb::make_tuple("stat", "row", "col", "add", "sub", "mul", "div", "min", "max", "atan2", "affine", "exp", "log",
                     "log1p", "sqrt", "tanh", "iszero", "rdiv", "lower", "upper", "powi", "powc", "damp", "exp_add", "powi_add", "damp_add", "outer");
  module.attr("BAND") = engine<float>().band;
}

// Python bindings of what kernels of strings, series and graphs ask of the core.
#include <nanobind/stl/optional.h>

#include <optional>
#include <vector>

#include "../bindings.hpp"
#include "names.hpp"
#include "paths.hpp"
#include "recurrences.hpp"
#include "windows.hpp"

namespace mercer {
namespace {

template <class T>
using Flat = Array<T, nb::ndim<1>>;
template <class T>
using Matrix = Output<T, nb::ndim<2>>;

using Stop = Flat<std::uint8_t>;

// Ends a computation without the GIL. In the main thread Python knows of Ctrl-C; in another one the caller, who waits for
// it, sets `stop`.
struct Interrupts : Watch {
  const std::uint8_t* stop;

  explicit Interrupts(const Stop& given) : stop(given.data()) {
    require(given.shape(0) == 1, "stop is one byte");
    ask = [](const Watch& watch) {
      if (__atomic_load_n(static_cast<const Interrupts&>(watch).stop, __ATOMIC_RELAXED)) return false;
      nb::gil_scoped_acquire python;
      return PyErr_CheckSignals() == 0;
    };
  }

  // Raise what ended a computation that did not come to its end.
  static void check(bool finished) {
    if (finished) return;
    nb::gil_scoped_acquire python;
    if (PyErr_Occurred()) throw nb::python_error();
    throw std::runtime_error("stopped by the caller");
  }
};

// `size` sequences that lie one after the other begin at `starts`.
bool lie_within(const i64* starts, i64 count, i64 size) {
  return count >= 0 && starts[0] >= 0 && starts[count] <= size && std::is_sorted(starts, starts + count + 1);
}

template <class T>
Ragged<T> ragged(const Flat<T>& letters, const Flat<i64>& starts) {
  const Ragged<T> found{letters.data(), starts.data(), i64(starts.shape(0)) - 1};
  require(lie_within(found.starts, found.count, i64(letters.shape(0))),
          "starts are increasing places among the letters, one more than sequences");
  return found;
}

bool a_place_for_each(const Matrix<double>& out, i64 left, i64 right) {
  return i64(out.shape(0)) == left && i64(out.shape(1)) == right;
}

template <class T>
void kmers(Flat<T> letters, Flat<i64> starts, i64 low, i64 high, int salt, Output<i64, nb::ndim<1>> out) {
  const Ragged<T> strings = ragged<T>(letters, starts);
  i64 total = 0;
  for (i64 i = 0; i < strings.count; ++i)
    for (i64 k = low; k <= high; ++k) total += std::max<i64>(0, strings.length(i) - k + 1);
  require(low >= 1 && high >= low && total == i64(out.shape(0)),
          "out has one place for each k-mer, and 1 <= low <= high");
  i64* at = out.data();
  for (i64 i = 0; i < strings.count; ++i)
    for (i64 k = low; k <= high && k <= strings.length(i); ++k)
      at = name_kmers(strings.at(i), strings.length(i), k, std::uint64_t(salt), at);
}

template <class T>
void sums_of_windows(Flat<T> left_letters, Flat<i64> left_starts, Flat<T> right_letters, Flat<i64> right_starts, i64 g,
                     Flat<std::uint64_t> weights, Stop stop, Matrix<double> out) {
  Interrupts watch(stop);
  const Ragged<T> left = ragged<T>(left_letters, left_starts), right = ragged<T>(right_letters, right_starts);
  require(g >= 1 && i64(weights.shape(0)) == g + 1 && a_place_for_each(out, left.count, right.count),
          "there is a weight for each number of equal letters, and out has a place for each pair");
  watch.check(window_sums(table<Strings>(), left, right, g, weights.data(), watch, out.data()));
}

template <class T>
void recurrences(int kind, Flat<double> parameters, Flat<T> left_letters, Flat<i64> left_starts, Flat<T> right_letters,
                 Flat<i64> right_starts, Stop stop, Matrix<double> out) {
  Interrupts watch(stop);
  const Ragged<T> left = ragged<T>(left_letters, left_starts), right = ragged<T>(right_letters, right_starts);
  const double* p = parameters.data();
  require(kind >= 0 && kind <= 3 && i64(parameters.shape(0)) >= (kind == 0 ? 3 : kind < 3 ? 4 : 0) &&
              (kind > 0 || p[0] >= 1) && a_place_for_each(out, left.count, right.count),
          "a recurrence has a kind from 0 to 3, its parameters and a place for each pair");
  watch.check(recurrence(table<Strings>(), kind, p, left, right, watch, out.data()));
}

void alignments(bool divisible, Matrix<const double> left, Flat<i64> left_starts, Matrix<const double> right,
                Flat<i64> right_starts, Stop stop, Matrix<double> out) {
  Interrupts watch(stop);
  const i64 n = i64(left_starts.shape(0)) - 1, m = i64(right_starts.shape(0)) - 1, d = i64(left.shape(1));
  const i64 *from = left_starts.data(), *to = right_starts.data();
  require(lie_within(from, n, i64(left.shape(0))) && lie_within(to, m, i64(right.shape(0))) && d >= 1 &&
              i64(right.shape(1)) == d && a_place_for_each(out, n, m),
          "both sides have series of the same dimension, and out a place for each pair");
  watch.check(align(table<Strings>(), divisible, d, left.data(), from, n, right.data(), to, m, watch, out.data()));
}

template <class T>
void runs_shared(Flat<T> left_letters, Flat<i64> left_starts, Flat<T> right_letters, Flat<i64> right_starts,
                 Flat<double> runs, Flat<double> shifts, Stop stop, Matrix<double> out) {
  Interrupts watch(stop);
  const Ragged<T> left = ragged<T>(left_letters, left_starts), right = ragged<T>(right_letters, right_starts);
  const i64 longest = i64(runs.shape(0)) - 1, shift = i64(shifts.shape(0)) - 1;
  require(longest >= 0 && shift >= 0 && a_place_for_each(out, left.count, right.count),
          "runs and shifts begin at 0, and out has a place for each pair");
  watch.check(shared_runs(left, right, runs.data(), longest, shifts.data(), shift, watch, out.data()));
}

i64 ranks_of(Array<i64> names, Output<std::int32_t> ranks) {
  const i64 size = i64(names.size());
  require(i64(ranks.size()) == size, "ranks have the wrong size");
  require(size < std::numeric_limits<std::int32_t>::max(), "too many names");
  return rank_names(names.data(), size, ranks.data());
}

// The arrays come from Python: a graph's arcs must stay within it, or memory would be read outside of them.
void check_graphs(const Flat<i64>& start, const Flat<i64>& arc_start, const Flat<i64>& target, const Flat<i64>& label,
           const std::optional<Flat<i64>>& length) {
  require(start.size() > 0 && arc_start.size() == label.size() + 1, "an array has the wrong length");
  require(!length || length->size() == target.size(), "an array has the wrong length");
  const i64 nodes = i64(label.size()), arcs = i64(target.size());
  require(start.data()[0] == 0 && start.data()[start.size() - 1] == nodes, "nodes out of range");
  require(arc_start.data()[0] == 0 && arc_start.data()[nodes] == arcs, "arcs out of range");
  for (std::size_t i = 0; i + 1 < start.size(); ++i) {
    const i64 first = start.data()[i], last = start.data()[i + 1];
    require(first <= last, "nodes out of range");
    i64 sum = 0;  // of all lengths: no path is longer
    for (i64 v = first; v < last; ++v) {
      require(arc_start.data()[v] <= arc_start.data()[v + 1], "arcs out of range");
      require(0 <= label.data()[v] && label.data()[v] < last - first, "labels out of range");
      for (i64 a = arc_start.data()[v]; a < arc_start.data()[v + 1]; ++a) {
        require(first <= target.data()[a] && target.data()[a] < last, "arcs out of range");
        if (length)
          require(length->data()[a] >= 0 && !__builtin_add_overflow(sum, length->data()[a], &sum), "lengths out of range");
      }
    }
  }
}

nb::object owned(std::vector<i64>&& values) {
  auto* kept = new std::vector<i64>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<i64>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, i64, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

nb::tuple path_counts(const Flat<i64>& start, const Flat<i64>& arc_start, const Flat<i64>& target, const Flat<i64>& label,
                      i64 first, i64 last, i64 longest, const std::optional<Flat<i64>>& length) {
  PathCounts out;
  {
    nb::gil_scoped_release free;
    check_graphs(start, arc_start, target, label, length);
    require(0 <= first && first <= last && last < i64(start.size()), "graphs out of range");
    PathCounter counter(
        {start.data(), arc_start.data(), target.data(), label.data(), length ? length->data() : nullptr}, longest);
    for (i64 i = first; i < last; ++i) counter.count(i, out);
  }
  return nb::make_tuple(owned(std::move(out.graph)), owned(std::move(out.from)), owned(std::move(out.to)),
                        owned(std::move(out.length)), owned(std::move(out.count)));
}

template <class T>
void bind(nb::module_& module) {
  module.def("kmers", &kmers<T>, "letters"_array, "starts"_array, "low"_a, "high"_a, "salt"_a, "out"_array, WithoutGIL());
  module.def("window_sums", &sums_of_windows<T>, "left_letters"_array, "left_starts"_array, "right_letters"_array,
             "right_starts"_array, "length"_a, "weights"_array, "stop"_array, "out"_array, WithoutGIL());
  module.def("recurrence", &recurrences<T>, "kind"_a, "parameters"_array, "left_letters"_array, "left_starts"_array,
             "right_letters"_array, "right_starts"_array, "stop"_array, "out"_array, WithoutGIL());
  module.def("shared_runs", &runs_shared<T>, "left_letters"_array, "left_starts"_array, "right_letters"_array,
             "right_starts"_array, "runs"_array, "shifts"_array, "stop"_array, "out"_array, WithoutGIL());
}

}  // namespace

void bind_sequences(nb::module_& module) {
  bind<std::int32_t>(module);
  bind<i64>(module);
  module.def("align", &alignments, "divisible"_a, "left"_array, "left_starts"_array, "right"_array,
             "right_starts"_array, "stop"_array, "out"_array, WithoutGIL());
  module.def("rank_names", &ranks_of, "names"_array, "ranks"_array, WithoutGIL(),
             "Rank names among those that occur, and return how many there are.");
  module.def("path_counts", &path_counts, "start"_a, "arc_start"_a, "target"_a, "label"_a, "first"_a, "last"_a,
             "longest"_a, "length"_a = nb::none());
}

}  // namespace mercer

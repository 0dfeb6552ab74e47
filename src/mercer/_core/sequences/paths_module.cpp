// Python bindings of counts of shortest paths. The call releases the GIL and runs on one thread.
#include "../bindings.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "paths.hpp"

namespace mercer {
namespace {

using Numbers = nb::ndarray<const i64, nb::numpy, nb::device::cpu, nb::c_contig, nb::ndim<1>>;

// The arrays come from Python: a graph's arcs must stay within it, or memory would be read outside of them.
void check(const Numbers& start, const Numbers& arc_start, const Numbers& target, const Numbers& label,
           const std::optional<Numbers>& length) {
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

nb::tuple path_counts(const Numbers& start, const Numbers& arc_start, const Numbers& target, const Numbers& label,
                      i64 first, i64 last, i64 longest, const std::optional<Numbers>& length) {
  PathCounts out;
  {
    nb::gil_scoped_release free;
    check(start, arc_start, target, label, length);
    require(0 <= first && first <= last && last < i64(start.size()), "graphs out of range");
    PathCounter counter(
        {start.data(), arc_start.data(), target.data(), label.data(), length ? length->data() : nullptr}, longest);
    for (i64 i = first; i < last; ++i) counter.count(i, out);
  }
  return nb::make_tuple(owned(std::move(out.graph)), owned(std::move(out.from)), owned(std::move(out.to)),
                        owned(std::move(out.length)), owned(std::move(out.count)));
}

}  // namespace

void bind_paths(nb::module_& module) {
  module.def("path_counts", &path_counts, "start"_a, "arc_start"_a, "target"_a, "label"_a, "first"_a, "last"_a,
             "longest"_a, "length"_a = nb::none());
}

}  // namespace mercer

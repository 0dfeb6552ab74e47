// Shortest paths of many graphs at once: how many lead from nodes of one label to nodes of another, by their length.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "../isa.hpp"

namespace mercer {

// Several graphs in a row. Arcs are ordered by the node they start from; labels are numbered from 0 within a graph.
struct Graphs {
  const i64* start;      // where the nodes of each graph begin, and their number
  const i64* arc_start;  // where the arcs of each node begin, and their number
  const i64* target;
  const i64* label;
  const i64* length = nullptr;  // of each arc, not negative; null for 1
};

struct PathCounts {
  std::vector<i64> graph, from, to, length, count;
};

class PathCounter {
 public:
  PathCounter(const Graphs& graphs, i64 longest) : g_(graphs), longest_(longest) {}

  // Paths of at least one edge between different nodes of graph i, each pair by its distance.
  void count(i64 i, PathCounts& out) {
    const i64 first = g_.start[i], last = g_.start[i + 1];
    i64 labels = 0;
    order_.clear();
    for (i64 v = first; v < last; ++v) {
      order_.push_back(v);
      labels = std::max(labels, g_.label[v] + 1);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](i64 a, i64 b) { return g_.label[a] < g_.label[b]; });
    reached_.assign(static_cast<std::size_t>(last - first), i64(-1));
    tally_.assign(static_cast<std::size_t>(labels), i64(0));
    found_.clear();
    for (std::size_t k = 0; k < order_.size(); ++k) {
      if (g_.length) search_by_length(order_[k], first, last);
      else search(order_[k], first);
      const bool end = k + 1 == order_.size() || g_.label[order_[k + 1]] != g_.label[order_[k]];
      if (end) emit(i, g_.label[order_[k]], out);
    }
  }

 private:
  struct Entry {
    i64 length, to, count;
  };

  void search(i64 source, i64 first) {
    frontier_.assign(1, source);
    reached_[source - first] = source;
    for (i64 length = 1; length <= longest_ && !frontier_.empty(); ++length) {
      next_.clear();
      for (const i64 v : frontier_)
        for (i64 a = g_.arc_start[v]; a < g_.arc_start[v + 1]; ++a) {
          const i64 u = g_.target[a];
          if (reached_[u - first] == source) continue;
          reached_[u - first] = source;
          next_.push_back(u);
          if (tally_[g_.label[u]]++ == 0) touched_.push_back(g_.label[u]);
        }
      for (const i64 label : touched_) {
        found_.push_back({length, label, tally_[label]});
        tally_[label] = 0;
      }
      touched_.clear();
      frontier_.swap(next_);
    }
  }

  // Dijkstra's algorithm: nodes leave the queue in the order of their distances.
  void search_by_length(i64 source, i64 first, i64 last) {
    distance_.assign(static_cast<std::size_t>(last - first), beyond);
    distance_[source - first] = 0;
    queue_.emplace(0, source);
    while (!queue_.empty()) {
      const auto [length, v] = queue_.top();
      queue_.pop();
      if (length != distance_[v - first]) continue;  // a shorter way was found since
      if (v != source) found_.push_back({length, g_.label[v], 1});
      for (i64 a = g_.arc_start[v]; a < g_.arc_start[v + 1]; ++a) {
        const i64 there = length + g_.length[a];
        if (i64& known = distance_[g_.target[a] - first]; there <= longest_ && there < known) {
          known = there;
          queue_.emplace(there, g_.target[a]);
        }
      }
    }
    if (found_.size() > crowded_) {
      merge();
      crowded_ = std::max(crowded_, 2 * found_.size());
    }
  }

  // Add up the entries of equal length and label, in their order.
  void merge() {
    std::sort(found_.begin(), found_.end(), [](const Entry& a, const Entry& b) {
      return a.length != b.length ? a.length < b.length : a.to < b.to;
    });
    std::size_t kept = 0;
    for (const Entry& entry : found_)
      if (kept && found_[kept - 1].length == entry.length && found_[kept - 1].to == entry.to)
        found_[kept - 1].count += entry.count;
      else
        found_[kept++] = entry;
    found_.resize(kept);
  }

  void emit(i64 graph, i64 from, PathCounts& out) {
    merge();
    for (const Entry& entry : found_) {
      out.graph.push_back(graph);
      out.from.push_back(from);
      out.to.push_back(entry.to);
      out.length.push_back(entry.length);
      out.count.push_back(entry.count);
    }
    found_.clear();
  }

  static constexpr i64 beyond = std::numeric_limits<i64>::max();
  using Place = std::pair<i64, i64>;  // a distance and a node

  Graphs g_;
  i64 longest_;
  std::vector<i64> order_, reached_, frontier_, next_, tally_, touched_;  // reached_: the last source that came there
  std::vector<i64> distance_;
  std::priority_queue<Place, std::vector<Place>, std::greater<Place>> queue_;
  std::vector<Entry> found_;
  std::size_t crowded_ = std::size_t(1) << 20;  // entries above which equal ones are added up: 24 MiB
};

}  // namespace mercer

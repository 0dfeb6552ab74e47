// Recurrences over pairs of sequences, a batch of right ones at a time. All return false if they were ended.
#pragma once

#include <algorithm>
#include <vector>

#include "strings.hpp"
#include "windows.hpp"

namespace mercer {

// The right sequences in batches of as many as there are lanes, alike in length.
template <class Do>
bool in_batches(i64 lanes, const i64* starts, i64 count, Do&& work) {
  std::vector<i64> order(std::size_t(count), 0), lengths(std::size_t(lanes), 0);
  for (i64 i = 0; i < count; ++i) order[std::size_t(i)] = i;
  const auto length = [starts](i64 i) { return starts[i + 1] - starts[i]; };
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return length(a) < length(b); });
  for (i64 b = 0; b < count; b += lanes) {
    const i64 size = std::min<i64>(lanes, count - b);
    for (i64 k = 0; k < lanes; ++k)
      lengths[std::size_t(k)] = k < size ? length(order[std::size_t(b + k)]) : 0;
    if (!work(order.data() + b, size, lengths.data(), lengths[std::size_t(size - 1)])) return false;
  }
  return true;
}

template <class T>
bool recurrence(const Strings& table, int kind, const double* p, const Ragged<T>& left, const Ragged<T>& right,
                Watch& watch, double* out) {
  const i64 lanes = table.lanes, slots = kind == 0 ? i64(p[0]) : 3, more = kind == 0 ? 2 * i64(p[0]) : 1;
  const std::vector<i64> x(left.letters + left.starts[0], left.letters + left.starts[left.count]);
  std::vector<i64> z;
  std::vector<double> work, found(std::size_t(lanes), 0.0);
  return in_batches(lanes, right.starts, right.count, [&](const i64* order, i64 size, const i64* lengths, i64 most) {
    z.assign(std::size_t(most * lanes), -1);
    for (i64 k = 0; k < size; ++k)
      for (i64 j = 0; j < lengths[k]; ++j) z[std::size_t(j * lanes + k)] = i64(right.at(order[k])[j]);
    work.resize(std::size_t((most * slots + more) * lanes));
    Sequences task;
    task.right = z.data();
    task.lengths = lengths;
    task.most = most;
    task.parameters = p;
    task.watch = &watch;
    task.work = work.data();
    task.out = found.data();
    for (i64 i = 0; i < left.count; ++i) {
      task.left = x.data() + (left.starts[i] - left.starts[0]);
      task.count = left.length(i);
      if (!table.recurrences[kind](task)) return false;
      for (i64 k = 0; k < size; ++k) out[i * right.count + order[k]] = found[std::size_t(k)];
    }
    return true;
  });
}

// Alignments of n series of d numbers with m others, which begin at `from` and at `to`.
inline bool align(const Strings& table, bool divisible, i64 d, const double* left, const i64* from, i64 n,
                  const double* right, const i64* to, i64 m, Watch& watch, double* out) {
  const i64 lanes = table.lanes;
  std::vector<double> z, work, found(std::size_t(lanes), 0.0);
  return in_batches(lanes, to, m, [&](const i64* order, i64 size, const i64* lengths, i64 most) {
    z.assign(std::size_t(most * d * lanes), 0.0);
    for (i64 k = 0; k < size; ++k)
      for (i64 j = 0; j < lengths[k] * d; ++j)
        z[std::size_t(j * lanes + k)] = right[to[order[k]] * d + j];
    work.resize(std::size_t(2 * (most + 1) * lanes));
    Series task;
    task.right = z.data();
    task.lengths = lengths;
    task.most = most;
    task.dimension = d;
    task.divisible = divisible;
    task.watch = &watch;
    task.work = work.data();
    task.out = found.data();
    for (i64 i = 0; i < n; ++i) {
      task.left = left + from[i] * d;
      task.count = from[i + 1] - from[i];
      if (!table.align(task)) return false;
      for (i64 k = 0; k < size; ++k) out[i * m + order[k]] = found[std::size_t(k)];
    }
    return true;
  });
}

// The sum over all pairs of places, up to `shift` apart, of shifts[|difference|] times runs[number of equal letters from
// there on, at most `longest`].
template <class T>
bool shared_runs(const Ragged<T>& left, const Ragged<T>& right, const double* runs, i64 longest, const double* shifts,
                 i64 shift, Watch& watch, double* out) {
  for (i64 a = 0; a < left.count; ++a)
    for (i64 b = 0; b < right.count; ++b) {
      const T *x = left.at(a), *z = right.at(b);
      const i64 n = left.length(a), m = right.length(b);
      double total = 0;
      for (i64 s = -shift; s <= shift; ++s) {  // x at i against z at i + s
        double here = 0;
        i64 run = 0;
        if (!step(watch, std::min(n, m) + 1)) return false;
        for (i64 i = std::min(n, m - s) - 1; i >= 0 && i + s >= 0; --i) {
          run = x[i] == z[i + s] ? std::min(run + 1, longest) : 0;
          here += runs[run];
        }
        total += shifts[s < 0 ? -s : s] * here;
      }
      out[a * right.count + b] = total;
    }
  return true;
}

}  // namespace mercer

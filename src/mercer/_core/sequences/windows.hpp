// Sums over pairs of windows of strings.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "strings.hpp"

namespace mercer {

// Sequences of letters, one after the other.
template <class T>
struct Ragged {
  const T* letters;
  const i64* starts;
  i64 count;

  const T* at(i64 i) const { return letters + starts[i]; }
  i64 length(i64 i) const { return starts[i + 1] - starts[i]; }
};

inline constexpr i64 piece = 256;  // windows of a string that are compared at a time, so that a batch stays in the cache
inline constexpr std::uint8_t other = 255, none = 254;  // letters that the left strings have not, and no letter

struct Piece {
  i64 owner, start, windows;
};

template <class T>
std::vector<Piece> pieces(const Ragged<T>& strings, i64 g) {
  std::vector<Piece> found;
  for (i64 i = 0; i < strings.count; ++i)
    for (i64 start = 0, windows = strings.length(i) - g + 1; start < windows; start += piece)
      found.push_back({i, strings.starts[i] + start, std::min(piece, windows - start)});
  std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.windows < b.windows; });
  return found;
}

// The letters of the left strings as bytes, and those of the right ones. Returns how many there are, 255 for too many.
template <class T>
int as_bytes(const Ragged<T>& left, const Ragged<T>& right, std::vector<std::uint8_t>& x, std::vector<std::uint8_t>& z) {
  std::unordered_map<T, std::uint8_t> known;
  std::vector<std::uint8_t> table(1024, other);  // for the first letters of Unicode
  const auto look = [&](T letter) {
    if (letter >= 0 && letter < T(table.size())) return table[std::size_t(letter)];
    const auto at = known.find(letter);
    return at == known.end() ? other : at->second;
  };
  int size = 0;
  x.resize(std::size_t(left.starts[left.count]) + 1);  // a window may move past the end
  z.resize(std::size_t(right.starts[right.count]));
  for (i64 i = left.starts[0]; i < left.starts[left.count]; ++i) {
    const T letter = left.letters[i];
    std::uint8_t code = look(letter);
    if (code == other) {
      if (size == none) return 255;
      code = std::uint8_t(size++);
      if (letter >= 0 && letter < T(table.size())) table[std::size_t(letter)] = code;
      else known[letter] = code;
    }
    x[std::size_t(i)] = code;
  }
  for (i64 i = right.starts[0]; i < right.starts[right.count]; ++i) z[std::size_t(i)] = look(right.letters[i]);
  return size;
}

// A batch of right strings in the layout of `Windows`.
struct WindowBatch {
  std::vector<std::uint8_t> letters, dead, moves;
  Windows windows;

  void fill(const Piece* first, i64 count, const std::uint8_t* z, int g, int width, bool four) {
    const Piece& longest = first[count - 1];
    const i64 rows = longest.windows + g - 1 + 2 * margin;
    letters.assign(std::size_t(rows * width), four ? 0 : none);
    dead.assign(std::size_t(rows * width), 0x80);
    for (i64 k = 0; k < count; ++k) {
      const i64 n = first[k].windows + g - 1;
      for (i64 j = -(diagonals - 1); j < n; ++j)
        for (i64 q = j < 0 ? -j : 0; q < diagonals && j + q < n; ++q) {
          const auto at = std::size_t((j + margin) * width + k * diagonals + q);
          letters[at] = z[first[k].start + j + q];
          if (j + q < first[k].windows) dead[at] = 0;
        }
    }
    if (four) {
      moves.assign(letters.size(), 0);
      for (i64 at = width; at + (g - 1) * width < i64(letters.size()); ++at)
        moves[std::size_t(at)] =
            std::uint8_t(letters[std::size_t(at - width)] | letters[std::size_t(at + (g - 1) * width)] << 2);
      windows.moves = moves.data() + margin * width;
    }
    windows.right = letters.data() + margin * width;
    windows.dead = dead.data() + margin * width;
    windows.most = longest.windows;
    windows.least = count * diagonals < width ? 0 : first[0].windows;
    windows.length = g;
  }
};

// The same one pair at a time, for alphabets, lengths and weights that do not fit into bytes.
template <class T>
bool one_by_one(const Ragged<T>& left, const Ragged<T>& right, i64 g, const double* weights, Watch& watch,
                double* out) {
  for (i64 a = 0; a < left.count; ++a)
    for (i64 b = 0; b < right.count; ++b) {
      const i64 n = left.length(a), m = right.length(b);
      const T *x = left.at(a), *z = right.at(b);
      double total = 0;
      if (n >= g && m >= g)
        for (i64 c = g - n; c <= m - g; ++c) {
          i64 i = c < 0 ? -c : 0, equal = 0;
          const i64 end = std::min(n, m - c);
          if (!step(watch, end - i)) return false;
          for (i64 k = i; k < end; ++k) {
            equal += x[k] == z[k + c];
            if (k - i < g - 1) continue;
            total += weights[equal];
            equal -= x[k - g + 1] == z[k - g + 1 + c];
          }
        }
      out[a * right.count + b] = total;
    }
  return true;
}

// The sum over all pairs of windows of `g` letters of the weight of their number of equal letters. False if it was ended.
template <class T>
bool window_sums(const Strings& table, const Ragged<T>& left, const Ragged<T>& right, i64 g, const std::uint64_t* w,
                 Watch& watch, double* out) {
  const i64 first = std::max<i64>(0, g - 15);
  // Windows with fewer equal letters than `first` are looked up where those with `first` are.
  const bool narrow = g < 256 && (first == 0 || std::all_of(w, w + first + 1, [](auto v) { return v == 0; }));
  std::vector<std::uint8_t> x, z;
  const int alphabet = narrow && table.windows ? as_bytes(left, right, x, z) : 255;
  if (alphabet == 255) {
    const std::vector<double> each(w, w + g + 1);
    return one_by_one(left, right, g, each.data(), watch, out);
  }
  std::uint64_t largest = *std::max_element(w, w + g + 1);
  int planes = 1;
  while (largest >>= 8) ++planes;
  std::vector<std::uint8_t> bytes(std::size_t(16 * planes), 0);
  for (int p = 0; p < planes; ++p)
    for (i64 s = first; s <= g; ++s) bytes[std::size_t(16 * p + s - first)] = std::uint8_t(w[s] >> (8 * p));
  std::fill_n(out, left.count * right.count, 0.0);
  const std::vector<Piece> rows = pieces(left, g), columns = pieces(right, g);
  const int width = table.width, lanes = width / diagonals;
  std::vector<std::uint64_t> totals(std::size_t(planes * lanes));
  const bool four = alphabet <= 4 && std::find(z.begin(), z.end(), other) == z.end();
  std::vector<std::uint8_t> steps(four ? x.size() : 0);  // the letter before a window, and its last one
  for (i64 i = 1; four && i + g - 1 < i64(x.size()); ++i)
    steps[std::size_t(i)] = std::uint8_t(x[std::size_t(i - 1)] | x[std::size_t(i + g - 1)] << 2);
  WindowBatch batch;
  for (i64 b = 0; b < i64(columns.size()); b += lanes) {
    const i64 count = std::min<i64>(lanes, i64(columns.size()) - b);
    batch.fill(columns.data() + b, count, z.data(), int(g), width, four);
    Windows& task = batch.windows;
    task.weights = bytes.data();
    task.planes = planes;
    task.first = int(first);
    task.out = totals.data();
    for (const Piece& row : rows) {
      if (!step(watch, 1 + row.windows * task.most / 128)) return false;  // that many at a time
      task.left = x.data() + row.start;
      task.left_moves = four ? steps.data() + row.start : nullptr;
      task.count = row.windows;
      table.windows(task);
      for (i64 k = 0; k < count; ++k) {
        double total = 0;
        for (int p = planes; p-- > 0;) total = total * 256 + double(totals[std::size_t(p * lanes + k)]);
        out[row.owner * right.count + columns[std::size_t(b + k)].owner] += total;
      }
    }
  }
  return true;
}

}  // namespace mercer

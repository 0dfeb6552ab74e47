// Names of features, which are 62-bit numbers, as the numbers of columns.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace mercer {

// Replace each name by its rank among the different names that occur, whose number is returned. Each name is looked up in
// a table, of which at most half is taken; only the different names are sorted.
inline std::int64_t rank_names(const std::int64_t* names, std::int64_t size, std::int32_t* ranks) {
  const auto bits = std::max(1, int(std::bit_width(std::uint64_t(2 * size))));
  std::vector<std::int32_t> table(std::size_t(1) << bits, -1);
  std::vector<std::int64_t> different;
  for (std::int64_t i = 0; i < size; ++i) {
    // A multiplicative hash (Knuth, 1973): names may be small numbers.
    std::size_t at = (std::uint64_t(names[i]) * 0x9E3779B97F4A7C15u) >> (64 - bits);
    while (table[at] >= 0 && different[table[at]] != names[i]) at = (at + 1) & (table.size() - 1);
    if (table[at] < 0) {
      table[at] = static_cast<std::int32_t>(different.size());
      different.push_back(names[i]);
    }
    ranks[i] = table[at];
  }
  std::vector<std::int32_t> order(different.size()), rank(different.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return different[a] < different[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::int32_t>(i);
  for (std::int64_t i = 0; i < size; ++i) ranks[i] = rank[ranks[i]];
  return std::int64_t(different.size());
}

}  // namespace mercer

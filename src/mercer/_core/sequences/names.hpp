// Names of features, which are 62-bit numbers: those of k-mers, and names as the numbers of columns.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "../isa.hpp"

namespace mercer {

inline constexpr std::uint64_t prime = (std::uint64_t(1) << 61) - 1, base = 1152921504606846883u % prime;

inline std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  const wide product = wide(a) * b;
  const std::uint64_t folded = std::uint64_t(product & prime) + std::uint64_t(product >> 61);
  return folded >= prime ? folded - prime : folded;
}

inline std::uint64_t mixed(std::uint64_t x) {  // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The name of each k-mer, a number below 2^62 that depends on the k-mer alone (and on `salt`): up to 8 letters of ASCII
// in 7 bits each, up to 28 of ACGT in 2 bits each, 60 bits of a polynomial of the letters otherwise.
template <class T>
i64* name_kmers(const T* letters, i64 length, i64 k, std::uint64_t salt, i64* out) {
  if (length < k) return out;
  const int bits = k <= 8 ? 7 : k <= 28 ? 2 : 0;
  const std::uint64_t packed_mask = (std::uint64_t(1) << (bits * k)) - 1;
  const std::uint64_t mark = packed_mask + 1 + (bits == 2 ? std::uint64_t(1) << 58 : 0) + (salt << 59);
  const auto code = [bits](T letter) -> int {
    if (bits == 7) return letter < 128 ? int(letter) : -1;
    switch (bits == 2 ? letter : 0) {
      case 'A': return 0;
      case 'C': return 1;
      case 'G': return 2;
      case 'T': return 3;
      default: return -1;
    }
  };
  std::uint64_t leaves = 1;  // base^k
  for (i64 i = 0; i < k; ++i) leaves = times(leaves, base);
  bool all_fit = bits > 0;
  for (i64 i = 0; all_fit && i < length; ++i) all_fit = code(letters[i]) >= 0;
  std::uint64_t packed = 0, polynomial = 0;
  i64 run = 0;  // letters up to here that fit
  for (i64 i = 0; i < length; ++i) {
    const int c = code(letters[i]);
    run = c < 0 ? 0 : run + 1;
    packed = (packed << bits | std::uint64_t(c < 0 ? 0 : c)) & packed_mask;
    if (!all_fit) {
      const auto residue = [](T letter) { return (std::uint64_t(letter) + 1) % prime; };
      polynomial = times(polynomial, base) + residue(letters[i]);
      if (i >= k) polynomial += prime - times(leaves, residue(letters[i - k]));
      polynomial %= prime;
    }
    if (i < k - 1) continue;
    *out++ = run >= k ? i64(mark | packed)
                      : i64(std::uint64_t(1) << 60 |
                            (mixed(polynomial + mixed(std::uint64_t(k) << 1 | salt)) >> 4));
  }
  return out;
}

// Replace each name by its rank among the different names that occur, whose number is returned. Each name is looked up in
// a table, of which at most half is taken; only the different names are sorted.
inline i64 rank_names(const i64* names, i64 size, std::int32_t* ranks) {
  const auto bits = std::max(1, int(std::bit_width(std::uint64_t(2 * size))));
  std::vector<std::int32_t> table(std::size_t(1) << bits, -1);
  std::vector<i64> different;
  for (i64 i = 0; i < size; ++i) {
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
  for (i64 i = 0; i < size; ++i) ranks[i] = rank[ranks[i]];
  return i64(different.size());
}

}  // namespace mercer

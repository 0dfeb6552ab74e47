// What kernels of strings ask of the core, for one instruction set: this file is compiled once per MERCER_ISA.
#include "strings.hpp"

#include "simd.hpp"
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace mercer::MERCER_ISA {

typedef std::uint8_t Bytes __attribute__((vector_size(register_bytes)));
typedef std::uint64_t Totals __attribute__((vector_size(register_bytes)));
constexpr int bytes = register_bytes;

inline Bytes row(const std::uint8_t* p) {
  Bytes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline Bytes all(std::uint8_t x) { return x - Bytes{}; }

// s + 1 where a letter is the one that enters.
inline Bytes count_in(Bytes s, Bytes letters, Bytes letter) {
#if defined(__AVX512BW__)
  const __mmask64 equal = _mm512_cmpeq_epi8_mask((__m512i)letters, (__m512i)letter);
  return (Bytes)_mm512_mask_sub_epi8((__m512i)s, equal, (__m512i)s, _mm512_set1_epi8(-1));
#else
  return s - (Bytes)(letters == letter);
#endif
}
// s - 1 where a letter is the one that leaves.
inline Bytes count_out(Bytes s, Bytes letters, Bytes letter) {
#if defined(__AVX512BW__)
  const __mmask64 equal = _mm512_cmpeq_epi8_mask((__m512i)letters, (__m512i)letter);
  return (Bytes)_mm512_mask_add_epi8((__m512i)s, equal, (__m512i)s, _mm512_set1_epi8(-1));
#else
  return s + (Bytes)(letters == letter);
#endif
}
// The byte of a table of 16, repeated in each 16 bytes, at each index; 0 where its highest bit is set.
inline Bytes look_up(Bytes table, Bytes index) {
#if defined(__AVX512BW__)
  return (Bytes)_mm512_shuffle_epi8((__m512i)table, (__m512i)index);
#elif defined(__AVX2__)
  return (Bytes)_mm256_shuffle_epi8((__m256i)table, (__m256i)index);
#elif defined(__aarch64__)
  return (Bytes)vqtbl1q_u8((uint8x16_t)table, (uint8x16_t)index);
#endif
}
// The sum of each 8 adjacent bytes.
inline Totals sums(Bytes v) {
#if defined(__AVX512BW__)
  return (Totals)_mm512_sad_epu8((__m512i)v, _mm512_setzero_si512());
#elif defined(__AVX2__)
  return (Totals)_mm256_sad_epu8((__m256i)v, _mm256_setzero_si256());
#elif defined(__x86_64__)
  return (Totals)_mm_sad_epu8((__m128i)v, _mm_setzero_si128());
#else
  Totals t{};
  for (int i = 0; i < bytes; ++i) t[i / 8] += v[i];
  return t;
#endif
}

// max(s - first, 0)
inline Bytes above(Bytes s, Bytes first) {
#if defined(__AVX512BW__)
  return (Bytes)_mm512_subs_epu8((__m512i)s, (__m512i)first);
#elif defined(__AVX2__)
  return (Bytes)_mm256_subs_epu8((__m256i)s, (__m256i)first);
#else
  return s > first ? s - first : Bytes{};
#endif
}

#if defined(__AVX2__) || defined(__aarch64__)

// What a move of a window does to the number of equal letters, for each of the 16 moves of the left window and, in a
// table of 16 bytes, of the right one.
struct Moves {
  alignas(64) std::uint8_t change[16][bytes];

  Moves() {
    for (int x = 0; x < 16; ++x)
      for (int i = 0; i < bytes; ++i) {
        const int z = i % 16;
        change[x][i] = std::uint8_t((x >> 2 == z >> 2) - ((x & 3) == (z & 3)));
      }
  }
};

// Windows slide down each diagonal: one letter enters the count of equal ones, one leaves. P bytes of weights; Long
// windows, whose fewest equal letters have no weight; Four letters.
template <int P, bool Long, bool Four>
void slide(const Windows& w) {
  static const Moves moves;
  const int g = w.length;
  const Bytes first = all(std::uint8_t(w.first));
  Bytes table[P];
  Totals total[P] = {};
  for (int p = 0; p < P; ++p)
    for (int i = 0; i < bytes; ++i) table[p][i] = w.weights[16 * p + i % 16];
  const auto add = [&](Bytes index) {
    for (int p = 0; p < P; ++p) total[p] += sums(look_up(table[p], index));
  };
  for (i64 c = 1 - w.count; c < w.most; c += diagonals) {
    i64 i = c + diagonals - 1 < 0 ? 1 - c - diagonals : 0;
    const i64 end = w.most - c < w.count ? w.most - c : w.count;
    // From `whole` to `ragged` all 8 windows of every string are windows.
    i64 whole = c < 0 ? -c : 0;
    i64 ragged = w.least - diagonals + 1 - c;
    if (ragged > end) ragged = end;
    if (whole > end) whole = end;
    if (ragged < whole) ragged = whole;
    i64 at = (i + c) * bytes;
    Bytes s{};
    for (int t = 0; t < g; ++t) s = count_in(s, row(w.right + at + t * bytes), all(w.left[i + t]));
    const auto moved = [&] {
      ++i;
      at += bytes;
      if constexpr (Four) {
        s += look_up(row(moves.change[w.left_moves[i]]), row(w.moves + at));
      } else {
        s = count_out(s, row(w.right + at - bytes), all(w.left[i - 1]));
        s = count_in(s, row(w.right + at + (g - 1) * bytes), all(w.left[i + g - 1]));
      }
    };
    for (; i < whole; moved()) add((Long ? above(s, first) : s) | row(w.dead + at));
    for (; i < ragged; moved()) add(Long ? above(s, first) : s);
    for (; i < end; moved()) add((Long ? above(s, first) : s) | row(w.dead + at));
  }
  for (int p = 0; p < P; ++p) std::memcpy(w.out + p * (bytes / 8), &total[p], sizeof(Totals));
}

template <int P>
void slide(const Windows& w) {
  if (w.moves) return w.first > 0 ? slide<P, true, true>(w) : slide<P, false, true>(w);
  return w.first > 0 ? slide<P, true, false>(w) : slide<P, false, false>(w);
}

void windows(const Windows& w) {
  switch (w.planes) {
    case 1: return slide<1>(w);
    case 2: return slide<2>(w);
    case 3: return slide<3>(w);
    case 4: return slide<4>(w);
    case 5: return slide<5>(w);
    case 6: return slide<6>(w);
    case 7: return slide<7>(w);
    default: return slide<8>(w);
  }
}

#else
constexpr void (*windows)(const Windows&) = nullptr;
#endif

}  // namespace mercer::MERCER_ISA

namespace mercer {
#define MERCER_JOIN2(a, b) a##b
#define MERCER_JOIN(a, b) MERCER_JOIN2(a, b)
const Strings& MERCER_JOIN(strings_, MERCER_ISA)() {
  static const Strings table{MERCER_ISA::bytes, MERCER_ISA::lanes<double>, MERCER_ISA::windows};
  return table;
}
}  // namespace mercer

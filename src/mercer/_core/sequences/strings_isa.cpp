// What kernels of strings ask of the core, for one instruction set: this file is compiled once per MERCER_ISA.
#include "strings.hpp"

#include "../engine/math.hpp"
#include "../engine/simd.hpp"
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

// -- recurrences over pairs of letters: a right sequence to each lane ----------------------------------------

using D = V<double>;
using Mask = I<double>;
constexpr int W = lanes<double>;

inline Mask letters_at(const Sequences& s, i64 j) {
  Mask v;
  std::memcpy(&v, s.right + j * W, sizeof v);
  return v;
}

// All subsequences of p letters that both have, or of up to p, each decayed by the letters it spans in both (Lodhi et
// al., 2002). `table` has K'_l(i - 1, j) of l = 1, ..., p - 1. What a row carries along lies in registers where P is p, in
// memory where P is 0.
template <int P>
bool subsequences(const Sequences& s) {
  const i64 p = P ? P : i64(s.parameters[0]);
  const D decay = splat<double>(s.parameters[1]), square = decay * decay;
  const bool blended = s.parameters[2] != 0;
  double *table = s.work, *rest = table + s.most * (p - 1) * W;
  D held[P ? 2 * P : 1];
  const auto before = [&](i64 l) {  // K'_l(i - 1, j - 1)
    if constexpr (P > 0) return held[l];
    else return load<double>(rest + l * W);
  };
  const auto run = [&](i64 l) {  // K''_l(i, j - 1)
    if constexpr (P > 0) return held[P + l];
    else return load<double>(rest + (p + l) * W);
  };
  const auto set = [&](i64 at, D v) {
    if constexpr (P > 0) held[at] = v;
    else store<double>(rest + at * W, v);
  };
  for (i64 i = 0; i < s.most * (p - 1) * W; ++i) table[i] = 0;
  D total{};
  for (i64 i = 0; i < s.count; ++i) {
    if (!step(*s.watch, s.most * p)) return false;
    for (i64 l = 0; l < 2 * p; ++l) set(l, splat<double>(l == 0 ? 1.0 : 0.0));  // K'_0 is 1
    const Mask letter = splat_bits<double>(s.left[i]);
    for (i64 j = 0; j < s.most; ++j) {
      const D both = letters_at(s, j) == letter ? square : D{};
      double* row = table + j * (p - 1) * W;
      D ends = before(p - 1);
      if (blended)
        for (i64 l = 0; l < p - 1; ++l) ends += before(l);
      total += both * ends;
      for (i64 l = p - 1; l > 0; --l) {
        const D up = load<double>(row + (l - 1) * W);
        const D along = decay * run(l) + both * before(l - 1);
        set(p + l, along);
        store<double>(row + (l - 1) * W, decay * up + along);
        set(l, up);
      }
    }
  }
  store<double>(s.out, total);
  return true;
}

bool subsequences(const Sequences& s) {
  switch (i64(s.parameters[0])) {
    case 1: return subsequences<1>(s);
    case 2: return subsequences<2>(s);
    case 3: return subsequences<3>(s);
    case 4: return subsequences<4>(s);
    case 5: return subsequences<5>(s);
    case 6: return subsequences<6>(s);
    default: return subsequences<0>(s);
  }
}

// The logarithm of the sum over all local alignments of exp(beta score) (Saigo et al., 2004). The sums are divided by
// 1e200 whenever they exceed it.
bool local_alignments(const Sequences& s) {
  const D match = splat<double>(s.parameters[0]), mismatch = splat<double>(s.parameters[1]);
  const D open = splat<double>(s.parameters[2]), extend = splat<double>(s.parameters[3]);
  const D large = splat<double>(1e200);
  double *sums = s.work, *pairs = sums + s.most * W, *gaps = pairs + s.most * W;
  for (i64 i = 0; i < 3 * s.most * W; ++i) sums[i] = 0;
  D total{}, one = splat<double>(1.0), divided{};
  for (i64 i = 0; i < s.count; ++i) {
    if (!step(*s.watch, s.most)) return false;
    const Mask letter = splat_bits<double>(s.left[i]);
    D diagonal{}, beside{}, along{};  // sums at (i - 1, j - 1), pairs and vertical gaps at (i, j - 1), horizontal ones
    for (i64 j = 0; j < s.most; ++j) {
      const Mask other = letters_at(s, j);
      const D weight = other < 0 ? D{} : (other == letter ? match : mismatch);
      const D pair = weight * (one + diagonal);
      const D gap = open * load<double>(pairs + j * W) + extend * load<double>(gaps + j * W);
      along = open * beside + extend * along;
      diagonal = load<double>(sums + j * W);
      store<double>(sums + j * W, pair + gap + along);
      store<double>(pairs + j * W, pair);
      store<double>(gaps + j * W, gap);
      beside = pair + gap;
      total += pair;
    }
    const Mask high = total > large;
    bool any = false;
    for (int k = 0; k < W; ++k) any |= high[k] != 0;
    if (any) {
      const D factor = high ? splat<double>(1e-200) : splat<double>(1.0);
      for (i64 k = 0; k < 3 * s.most; ++k) store<double>(sums + k * W, load<double>(sums + k * W) * factor);
      total *= factor;
      one *= factor;
      divided += high ? splat<double>(1.0) : D{};
    }
  }
  store<double>(s.out, log<double>(one + total) + divided * splat<double>(460.51701859880913680));
  return true;
}

// The score of the best local alignment (Smith and Waterman, 1981), with affine gaps (Gotoh, 1982).
bool best_alignment(const Sequences& s) {
  const D match = splat<double>(s.parameters[0]), mismatch = splat<double>(s.parameters[1]);
  const D open = splat<double>(s.parameters[2]), extend = splat<double>(s.parameters[3]);
  const D never = splat<double>(-1e300);
  double *best = s.work, *gaps = best + s.most * W;
  for (i64 i = 0; i < s.most * W; ++i) {
    best[i] = 0;
    gaps[i] = -1e300;
  }
  D top{};
  for (i64 i = 0; i < s.count; ++i) {
    if (!step(*s.watch, s.most)) return false;
    const Mask letter = splat_bits<double>(s.left[i]);
    D diagonal{}, beside{}, along = never;
    for (i64 j = 0; j < s.most; ++j) {
      const Mask other = letters_at(s, j);
      const D score = other < 0 ? never : (other == letter ? match : mismatch);
      const D up = load<double>(best + j * W);
      const D gap = max<double>(up + open, load<double>(gaps + j * W) + extend);
      along = max<double>(beside + open, along + extend);
      beside = max<double>(max<double>(D{}, diagonal + score), max<double>(gap, along));
      diagonal = up;
      store<double>(best + j * W, beside);
      store<double>(gaps + j * W, gap);
      top = max<double>(top, beside);
    }
  }
  store<double>(s.out, top);
  return true;
}

// The least number of letters to insert, delete or replace (Levenshtein, 1966).
bool edits(const Sequences& s) {
  const D one = splat<double>(1.0);
  double* row = s.work;  // distances of the first i letters to the first j, j = 0, ..., most
  for (i64 j = 0; j <= s.most; ++j) store<double>(row + j * W, splat<double>(double(j)));
  for (i64 i = 0; i < s.count; ++i) {
    if (!step(*s.watch, s.most)) return false;
    const Mask letter = splat_bits<double>(s.left[i]);
    D diagonal = load<double>(row), beside = splat<double>(double(i + 1));
    store<double>(row, beside);
    for (i64 j = 0; j < s.most; ++j) {
      const D up = load<double>(row + (j + 1) * W);
      const D replaced = diagonal + (letters_at(s, j) == letter ? D{} : one);
      beside = min<double>(replaced, min<double>(up, beside) + one);
      diagonal = up;
      store<double>(row + (j + 1) * W, beside);
    }
  }
  for (int k = 0; k < W; ++k) s.out[k] = row[s.lengths[k] * W + k];
  return true;
}

// A number v 2^e of any size: v from 1 to 2, e whole.
struct Wide {
  D v, e;
};

inline D at(const Wide& w, D e) {  // w / 2^e of w that is not much larger
  return scale_by_power<double>(w.v, max<double>(w.e - e, splat<double>(-1080.0)));
}
inline Wide wide(D v, D e) {
  const Mask bits = reinterpret_cast<Mask>(v);
  const D power = __builtin_convertvector((bits >> 52) - 1023, D);
  return {reinterpret_cast<D>((bits & ((i64(1) << 52) - 1)) | (i64(1023) << 52)), e + power};
}

// The logarithm of the sum over all alignments of two series of the product of local kernel values (Cuturi, 2011). Sums of
// neighbouring cells may be far apart, so that each has a power of two of its own.
bool align(const Series& s) {
  const Exponent<double> power(1, 0);
  const D never = splat<double>(-1e18);  // the exponent of nothing
  const D farthest = splat<double>(1e9);  // squared distances from which on a local value is as good as zero
  double* row = s.work;  // of the first i places against the first j, j = 0, ..., most: v and e
  for (i64 j = 0; j <= s.most; ++j) {
    store<double>(row + 2 * j * W, splat<double>(1.0));
    store<double>(row + (2 * j + 1) * W, j ? never : D{});
  }
  for (i64 i = 0; i < s.count; ++i) {
    if (!step(*s.watch, s.most * (s.dimension + 8))) return false;  // a cell costs as much as 8 numbers of its places
    Wide diagonal{load<double>(row), load<double>(row + W)}, beside{splat<double>(1.0), never};
    store<double>(row + W, never);
    for (i64 j = 0; j < s.most; ++j) {
      D square{};
      for (i64 d = 0; d < s.dimension; ++d) {
        const D apart = load<double>(s.right + (j * s.dimension + d) * W) - splat<double>(s.left[i * s.dimension + d]);
        square += apart * apart;
      }
      square = min<double>(square, farthest);
      // exp(-square) = 2^n exp(r)
      const D n = (6755399441055744.0 - square * 1.4426950408889634074) - 6755399441055744.0;
      D local = power((-square - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6);
      if (s.divisible) local /= 2.0 - scale_by_power<double>(local, max<double>(n, splat<double>(-1080.0)));
      double* here = row + 2 * (j + 1) * W;
      const Wide up{load<double>(here), load<double>(here + W)};
      const D most = max<double>(diagonal.e, max<double>(up.e, beside.e));
      beside = wide(local * ((at(diagonal, most) + at(up, most)) + at(beside, most)), most + n);
      diagonal = up;
      store<double>(here, beside.v);
      store<double>(here + W, beside.e);
    }
  }
  for (int k = 0; k < W; ++k) {
    const double* end = row + 2 * s.lengths[k] * W + k;
    s.out[k] = std::log(end[0]) + end[W] * 0.69314718055994530942;
  }
  return true;
}

}  // namespace mercer::MERCER_ISA

namespace mercer {
MERCER_TABLE(Strings, bytes, lanes<double>, windows, {subsequences, local_alignments, best_alignment, edits}, align)
}  // namespace mercer

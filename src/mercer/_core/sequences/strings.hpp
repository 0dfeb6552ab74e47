// What kernels of strings ask of the core: sums over pairs of windows, and recurrences over pairs of letters.
#pragma once

#include "../isa.hpp"

namespace mercer {

// Diagonals of one right string that lie in adjacent bytes: as many as one instruction adds up.
inline constexpr int diagonals = 8;
// Empty rows above and below a batch, which diagonals that begin or end in it reach.
inline constexpr int margin = 8;

// Whom a long computation asks now and then whether it shall go on; after a no it returns false.
struct Watch {
  bool (*ask)(const Watch&) = nullptr;
  i64 done = 0;  // steps since the last question
};
// Steps, of some nanoseconds each, between two questions.
inline constexpr i64 patience = i64(1) << 22;
// Internal to each file: one compiled for a newer processor must not stand in for the others.
[[nodiscard]] static inline bool step(Watch& watch, i64 steps) {
  if ((watch.done += steps) < patience) return true;
  watch.done = 0;
  return watch.ask(watch);
}

// One left string against a batch of right ones, `width / diagonals` of them. Row j of `right` has the letters j, ...,
// j + 7 of each. A window is `length` letters that begin at a letter; a right window that is none has 0x80 in `dead`.
struct Windows {
  const std::uint8_t* left = nullptr;
  i64 count = 0;  // left windows
  const std::uint8_t *right = nullptr, *dead = nullptr;  // at row 0; `margin` rows lie before it
  // Of alphabets of four letters: the letter that leaves a window that comes to begin at row j and the one that enters,
  // in four bits. Likewise of the left string. Null otherwise.
  const std::uint8_t *moves = nullptr, *left_moves = nullptr;
  i64 most = 0, least = 0;  // right windows of the longest and of the shortest string
  int length = 0;
  // The weight of a pair of windows with s equal letters, in `planes` bytes: byte p of the weights of s = first, ...,
  // first + 15 begins at 16 p. Those of fewer than `first` are zero.
  const std::uint8_t* weights = nullptr;
  int planes = 0, first = 0;
  std::uint64_t* out = nullptr;  // planes x right strings
};

// One left sequence against a batch of right ones, one to each lane. Row j of `right` has letter j of each; -1 behind the
// end of a sequence, which no letter is.
struct Sequences {
  const i64* left = nullptr;
  i64 count = 0;
  const i64 *right = nullptr, *lengths = nullptr;
  i64 most = 0;
  const double* parameters = nullptr;
  Watch* watch = nullptr;
  double* work = nullptr;
  double* out = nullptr;  // one for each lane
};

// The same of series of `dimension` numbers each: row j of `right` has the numbers of place j, each of all lanes.
struct Series {
  const double* left = nullptr;
  i64 count = 0;
  const double* right = nullptr;
  const i64* lengths = nullptr;
  i64 most = 0, dimension = 0;
  bool divisible = true;
  Watch* watch = nullptr;
  double* work = nullptr;
  double* out = nullptr;
};

struct Strings {
  int width = 0;  // bytes of a row of windows
  int lanes = 0;  // sequences of a batch
  void (*windows)(const Windows&);  // null where this instruction set has no table of 16 bytes
  bool (*recurrences[4])(const Sequences&);  // subsequences, local alignments, best local alignment, edits
  bool (*align)(const Series&);
};

}  // namespace mercer

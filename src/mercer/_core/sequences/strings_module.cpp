// Python bindings of what kernels of strings ask of the core. A call releases the GIL and runs on one thread.
#include "../bindings.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "strings.hpp"

namespace mercer {
namespace {

template <class T>
using Flat = nb::ndarray<T, nb::numpy, nb::device::cpu, nb::c_contig, nb::ndim<1>>;
template <class T>
using Matrix = nb::ndarray<T, nb::numpy, nb::device::cpu, nb::c_contig, nb::ndim<2>>;

const Strings* chosen = nullptr;

using Stop = Flat<const std::uint8_t>;

// Ends a computation without the GIL. In the main thread Python knows of Ctrl-C; in another one the caller, who waits for
// it, sets `stop`.
struct Interrupts : Watch {
  const std::uint8_t* stop;

  explicit Interrupts(const Stop& given) : stop(given.data()) {
    if (given.shape(0) != 1) throw std::invalid_argument("stop is one byte");
    ask = [](const Watch& watch) {
      if (__atomic_load_n(static_cast<const Interrupts&>(watch).stop, __ATOMIC_RELAXED))
        throw std::runtime_error("stopped by the caller");
      nb::gil_scoped_acquire python;
      if (PyErr_CheckSignals()) throw nb::python_error();
    };
  }
};

// Sequences of letters, one after the other.
template <class T>
struct Ragged {
  const T* letters;
  const i64* starts;
  i64 count;

  Ragged(const Flat<const T>& all, const Flat<const i64>& at)
      : letters(all.data()), starts(at.data()), count(i64(at.shape(0)) - 1) {
    if (count < 0 || starts[0] < 0 || starts[count] > i64(all.shape(0)) || !std::is_sorted(starts, starts + count + 1))
      throw std::invalid_argument("starts are increasing places among the letters, one more than sequences");
  }
  const T* at(i64 i) const { return letters + starts[i]; }
  i64 length(i64 i) const { return starts[i + 1] - starts[i]; }
};

// -- names of k-mers --------------------------------------------------------------------------------------

constexpr std::uint64_t prime = (std::uint64_t(1) << 61) - 1, base = 1152921504606846883u % prime;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  const wide product = wide(a) * b;
  const std::uint64_t folded = std::uint64_t(product & prime) + std::uint64_t(product >> 61);
  return folded >= prime ? folded - prime : folded;
}

std::uint64_t mixed(std::uint64_t x) {  // the finaliser of splitmix64
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

template <class T>
void kmers(Flat<const T> letters, Flat<const i64> starts, i64 low, i64 high, int salt, Flat<i64> out) {
  const Ragged<T> strings(letters, starts);
  i64 total = 0;
  for (i64 i = 0; i < strings.count; ++i)
    for (i64 k = low; k <= high; ++k) total += std::max<i64>(0, strings.length(i) - k + 1);
  if (low < 1 || high < low || total != i64(out.shape(0)))
    throw std::invalid_argument("out has one place for each k-mer, and 1 <= low <= high");
  nb::gil_scoped_release release;
  i64* at = out.data();
  for (i64 i = 0; i < strings.count; ++i)
    for (i64 k = low; k <= high && k <= strings.length(i); ++k)
      at = name_kmers(strings.at(i), strings.length(i), k, std::uint64_t(salt), at);
}

// -- sums over pairs of windows ---------------------------------------------------------------------------

constexpr i64 piece = 256;  // windows of a string that are compared at a time, so that a batch stays in the cache
constexpr std::uint8_t other = 255, none = 254;  // letters that the left strings have not, and no letter

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
struct Batch {
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
void one_by_one(const Ragged<T>& left, const Ragged<T>& right, i64 g, const double* weights, Watch& watch,
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
          step(watch, end - i);
          for (i64 k = i; k < end; ++k) {
            equal += x[k] == z[k + c];
            if (k - i < g - 1) continue;
            total += weights[equal];
            equal -= x[k - g + 1] == z[k - g + 1 + c];
          }
        }
      out[a * right.count + b] = total;
    }
}

template <class T>
void window_sums(Flat<const T> left_letters, Flat<const i64> left_starts, Flat<const T> right_letters,
                 Flat<const i64> right_starts, i64 g, Flat<const std::uint64_t> weights, Stop stop,
                 Matrix<double> out) {
  Interrupts watch(stop);
  const Ragged<T> left(left_letters, left_starts), right(right_letters, right_starts);
  if (g < 1 || i64(weights.shape(0)) != g + 1 || i64(out.shape(0)) != left.count || i64(out.shape(1)) != right.count)
    throw std::invalid_argument("there is a weight for each number of equal letters, and out has a place for each pair");
  nb::gil_scoped_release release;
  const std::uint64_t* w = weights.data();
  const i64 first = std::max<i64>(0, g - 15);
  const bool narrow = g < 256 && std::all_of(w, w + first, [](auto v) { return v == 0; });
  std::vector<std::uint8_t> x, z;
  const int alphabet = narrow && chosen->windows ? as_bytes(left, right, x, z) : 255;
  if (alphabet == 255) {
    const std::vector<double> each(w, w + g + 1);
    return one_by_one(left, right, g, each.data(), watch, out.data());
  }
  std::uint64_t largest = *std::max_element(w, w + g + 1);
  int planes = 1;
  while (largest >>= 8) ++planes;
  std::vector<std::uint8_t> table(std::size_t(16 * planes), 0);
  for (int p = 0; p < planes; ++p)
    for (i64 s = first; s <= g; ++s) table[std::size_t(16 * p + s - first)] = std::uint8_t(w[s] >> (8 * p));
  std::fill(out.data(), out.data() + out.size(), 0.0);
  const std::vector<Piece> rows = pieces(left, g), columns = pieces(right, g);
  const int width = chosen->width, lanes = width / diagonals;
  std::vector<std::uint64_t> totals(std::size_t(planes * lanes));
  const bool four = alphabet <= 4 && std::find(z.begin(), z.end(), other) == z.end();
  std::vector<std::uint8_t> steps(four ? x.size() : 0);  // the letter before a window, and its last one
  for (i64 i = 1; four && i + g - 1 < i64(x.size()); ++i)
    steps[std::size_t(i)] = std::uint8_t(x[std::size_t(i - 1)] | x[std::size_t(i + g - 1)] << 2);
  Batch batch;
  for (i64 b = 0; b < i64(columns.size()); b += lanes) {
    const i64 count = std::min<i64>(lanes, i64(columns.size()) - b);
    batch.fill(columns.data() + b, count, z.data(), int(g), width, four);
    Windows& task = batch.windows;
    task.weights = table.data();
    task.planes = planes;
    task.first = int(first);
    task.out = totals.data();
    for (const Piece& row : rows) {
      step(watch, 1 + row.windows * task.most / 128);  // that many at a time
      task.left = x.data() + row.start;
      task.left_moves = four ? steps.data() + row.start : nullptr;
      task.count = row.windows;
      chosen->windows(task);
      for (i64 k = 0; k < count; ++k) {
        double total = 0;
        for (int p = planes; p-- > 0;) total = total * 256 + double(totals[std::size_t(p * lanes + k)]);
        out.data()[row.owner * right.count + columns[std::size_t(b + k)].owner] += total;
      }
    }
  }
}

// -- recurrences over pairs of letters --------------------------------------------------------------------

// The right sequences in batches of as many as there are lanes, alike in length.
template <class Do>
void in_batches(const i64* starts, i64 count, Do&& work) {
  std::vector<i64> order(std::size_t(count), 0), lengths(std::size_t(chosen->lanes), 0);
  for (i64 i = 0; i < count; ++i) order[std::size_t(i)] = i;
  const auto length = [starts](i64 i) { return starts[i + 1] - starts[i]; };
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return length(a) < length(b); });
  for (i64 b = 0; b < count; b += chosen->lanes) {
    const i64 size = std::min<i64>(chosen->lanes, count - b);
    for (i64 k = 0; k < chosen->lanes; ++k)
      lengths[std::size_t(k)] = k < size ? length(order[std::size_t(b + k)]) : 0;
    work(order.data() + b, size, lengths.data(), lengths[std::size_t(size - 1)]);
  }
}

template <class T>
void recurrence(int kind, Flat<const double> parameters, Flat<const T> left_letters, Flat<const i64> left_starts,
                Flat<const T> right_letters, Flat<const i64> right_starts, Stop stop, Matrix<double> out) {
  Interrupts watch(stop);
  const Ragged<T> left(left_letters, left_starts), right(right_letters, right_starts);
  const i64 given = i64(parameters.shape(0));
  const double* p = parameters.data();
  if (kind < 0 || kind > 3 || given < (kind == 0 ? 3 : kind < 3 ? 4 : 0) || (kind == 0 && !(p[0] >= 1)) ||
      i64(out.shape(0)) != left.count || i64(out.shape(1)) != right.count)
    throw std::invalid_argument("a recurrence has a kind from 0 to 3, its parameters and a place for each pair");
  nb::gil_scoped_release release;
  const i64 lanes = chosen->lanes, slots = kind == 0 ? i64(p[0]) : 3, more = kind == 0 ? 2 * i64(p[0]) : 1;
  const std::vector<i64> x(left.letters + left.starts[0], left.letters + left.starts[left.count]);
  std::vector<i64> z;
  std::vector<double> work, found(std::size_t(lanes), 0.0);
  in_batches(right.starts, right.count, [&](const i64* order, i64 size, const i64* lengths, i64 most) {
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
      chosen->recurrences[kind](task);
      for (i64 k = 0; k < size; ++k) out.data()[i * right.count + order[k]] = found[std::size_t(k)];
    }
  });
}

void align(bool divisible, Matrix<const double> left, Flat<const i64> left_starts, Matrix<const double> right,
           Flat<const i64> right_starts, Stop stop, Matrix<double> out) {
  Interrupts watch(stop);
  const i64 n = i64(left_starts.shape(0)) - 1, m = i64(right_starts.shape(0)) - 1, d = i64(left.shape(1));
  const i64 *from = left_starts.data(), *to = right_starts.data();
  if (n < 0 || m < 0 || d < 1 || i64(right.shape(1)) != d || !std::is_sorted(from, from + n + 1) ||
      !std::is_sorted(to, to + m + 1) || from[0] < 0 || to[0] < 0 || from[n] > i64(left.shape(0)) ||
      to[m] > i64(right.shape(0)) || i64(out.shape(0)) != n || i64(out.shape(1)) != m)
    throw std::invalid_argument("both sides have series of the same dimension, and out a place for each pair");
  nb::gil_scoped_release release;
  const i64 lanes = chosen->lanes;
  std::vector<double> z, work, found(std::size_t(lanes), 0.0);
  in_batches(to, m, [&](const i64* order, i64 size, const i64* lengths, i64 most) {
    z.assign(std::size_t(most * d * lanes), 0.0);
    for (i64 k = 0; k < size; ++k)
      for (i64 j = 0; j < lengths[k] * d; ++j)
        z[std::size_t(j * lanes + k)] = right.data()[to[order[k]] * d + j];
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
      task.left = left.data() + from[i] * d;
      task.count = from[i + 1] - from[i];
      chosen->align(task);
      for (i64 k = 0; k < size; ++k) out.data()[i * m + order[k]] = found[std::size_t(k)];
    }
  });
}

// -- runs of equal letters at places that are up to `shift` apart ------------------------------------------

// The sum over all pairs of places of weight[|difference|] times run[number of equal letters from there on].
template <class T>
void shared_runs(Flat<const T> left_letters, Flat<const i64> left_starts, Flat<const T> right_letters,
                 Flat<const i64> right_starts, Flat<const double> runs, Flat<const double> shifts, Stop stop,
                 Matrix<double> out) {
  Interrupts watch(stop);
  const Ragged<T> left(left_letters, left_starts), right(right_letters, right_starts);
  const i64 longest = i64(runs.shape(0)) - 1, shift = i64(shifts.shape(0)) - 1;
  if (longest < 0 || shift < 0 || i64(out.shape(0)) != left.count || i64(out.shape(1)) != right.count)
    throw std::invalid_argument("runs and shifts begin at 0, and out has a place for each pair");
  nb::gil_scoped_release release;
  for (i64 a = 0; a < left.count; ++a)
    for (i64 b = 0; b < right.count; ++b) {
      const T *x = left.at(a), *z = right.at(b);
      const i64 n = left.length(a), m = right.length(b);
      double total = 0;
      for (i64 s = -shift; s <= shift; ++s) {  // x at i against z at i + s
        double here = 0;
        i64 run = 0;
        step(watch, std::min(n, m) + 1);
        for (i64 i = std::min(n, m - s) - 1; i >= 0 && i + s >= 0; --i) {
          run = x[i] == z[i + s] ? std::min(run + 1, longest) : 0;
          here += runs.data()[run];
        }
        total += shifts.data()[s < 0 ? -s : s] * here;
      }
      out.data()[a * right.count + b] = total;
    }
}

template <class T>
void bind(nb::module_& module) {
  module.def("kmers", &kmers<T>, "letters"_a.noconvert(), "starts"_a.noconvert(), "low"_a, "high"_a, "salt"_a,
             "out"_a.noconvert());
  module.def("window_sums", &window_sums<T>, "left_letters"_a.noconvert(), "left_starts"_a.noconvert(),
             "right_letters"_a.noconvert(), "right_starts"_a.noconvert(), "length"_a, "weights"_a.noconvert(),
             "stop"_a.noconvert(), "out"_a.noconvert());
  module.def("recurrence", &recurrence<T>, "kind"_a, "parameters"_a.noconvert(), "left_letters"_a.noconvert(),
             "left_starts"_a.noconvert(), "right_letters"_a.noconvert(), "right_starts"_a.noconvert(),
             "stop"_a.noconvert(), "out"_a.noconvert());
  module.def("shared_runs", &shared_runs<T>, "left_letters"_a.noconvert(), "left_starts"_a.noconvert(),
             "right_letters"_a.noconvert(), "right_starts"_a.noconvert(), "runs"_a.noconvert(),
             "shifts"_a.noconvert(), "stop"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace

void bind_strings(nb::module_& module, [[maybe_unused]] const std::string& isa) {
  chosen = &strings_baseline();
#if defined(MERCER_X86_DISPATCH)
  if (isa == "avx512") chosen = &strings_avx512();
  if (isa == "avx2") chosen = &strings_avx2();
#endif
  bind<std::int32_t>(module);
  bind<i64>(module);
  module.def("align", &align, "divisible"_a, "left"_a.noconvert(), "left_starts"_a.noconvert(), "right"_a.noconvert(),
             "right_starts"_a.noconvert(), "stop"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace mercer

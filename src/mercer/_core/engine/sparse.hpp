// Sums over coordinates of sparse rows, in double: by merging two rows, or, for inner products, along lists by column.
#pragma once

#include "statistics.hpp"

namespace mercer::MERCER_ISA {

template <Stat S>
inline double plus_term(double sum, double x, double z, double w) {
  if constexpr (S == Stat::minimum) return sum + std::min(x, z);
  if constexpr (S == Stat::sqsum) return multiply_add<double>(x + z, x + z, sum);
  const double t = (x - z) * w;
  if constexpr (S == Stat::sqdist) return multiply_add<double>(t, t, sum);
  if constexpr (S == Stat::l1) return sum + std::abs(t);
  if constexpr (S == Stat::chi2) return x + z > 0 ? multiply_add<double>(t, t / (x + z), sum) : sum;
  return sum;
}

// A merge of the sorted indices of two rows; exact zeros cost nothing.
template <class T, Stat S>
double merged(const Operand<T>& o, i64 r, i64 c) {
  const auto weight = [&](std::int32_t j) { return o.weight ? double(o.weight[j]) : 1.0; };
  i64 a = o.xs.start[r], b = o.zs.start[c];
  const i64 a1 = o.xs.start[r + 1], b1 = o.zs.start[c + 1];
  double sum = 0;
  while (a < a1 && b < b1) {
    const auto p = o.xs.index[a], q = o.zs.index[b];
    if (p == q) sum = plus_term<S>(sum, o.xs.data[a++], o.zs.data[b++], weight(p));
    else if (p < q) sum = plus_term<S>(sum, o.xs.data[a++], 0, weight(p));
    else sum = plus_term<S>(sum, 0, o.zs.data[b++], weight(q));
  }
  for (; a < a1; ++a) sum = plus_term<S>(sum, o.xs.data[a], 0, weight(o.xs.index[a]));
  for (; b < b1; ++b) sum = plus_term<S>(sum, 0, o.zs.data[b], weight(o.zs.index[b]));
  return sum;
}

template <class T, Stat S>
void strip_merged(const Operand<T>& o, i64 r, int rows, i64 c, i64 cols, i64 m, T* out) {
  for (int i = 0; i < rows; ++i)
    for (i64 j = 0; j < cols; ++j) out[i * cols + j] = c + j < m ? static_cast<T>(merged<T, S>(o, r + i, c + j)) : T(0);
}

// Squared norms, summed as inner products are: those of equal rows are the same to the last bit.
template <class T>
void sparse_norms(const Sparse<T>& x, i64 n, double* out) {
  for (i64 i = 0; i < n; ++i) {
    double sum = 0;
    for (i64 a = x.start[i]; a < x.start[i + 1]; ++a) sum = multiply_add<double>(x.data[a], x.data[a], sum);
    out[i] = sum;
  }
}

// Inner products of the rows of a band with one strip of right points after the other. For each nonzero of a row the
// list of its column says which right points have one there, too, and only those are visited; all are where the column
// is at hand with its zeros, whose terms change no sum. Strips come from left to right, so that each nonzero remembers how
// far it is in its list, and is forgotten at the list's end. Terms are added in the order of the coordinates whichever
// point is on the left.
template <class T>
class SparseProducts {
 public:
  void enter(const Operand<T>& o, i64 r0, i64 r1) {
    band_ = r0;
    sums_.resize(static_cast<std::size_t>(strip_cols<T>));
    if (o.zc.start) {
      left_.resize(static_cast<std::size_t>(o.xs.start[r1] - o.xs.start[r0]));
      many_.resize(static_cast<std::size_t>(r1 - r0));
      reached_.assign(static_cast<std::size_t>(r1 - r0), i64(-1));
    } else {
      spread_.resize(static_cast<std::size_t>(o.d), T(0));  // all zero between rows
    }
  }

  // Where they are wanted (not null): the inner products and the squared distances made of them.
  void strip(const Operand<T>& o, i64 r, int rows, i64 c, i64 cols, i64 m, T* dots, T* apart) {
    const i64 have = std::clamp<i64>(m - c, 0, cols);
    for (int i = 0; i < rows; ++i) {
      std::fill_n(sums_.data(), have, 0.0);
      if (o.zc.start) walk(o, r + i, c, c + have);
      else visit(o, r + i, c, have);
      const double* sums = sums_.data();
      if (dots) {
        for (i64 j = 0; j < have; ++j) dots[i * cols + j] = static_cast<T>(sums[j]);
        std::fill_n(dots + i * cols + have, cols - have, T(0));
      }
      if (apart) {
        distances(o, r + i, c, have, apart + i * cols);
        std::fill_n(apart + i * cols + have, cols - have, T(0));
      }
    }
  }

 private:
  void walk(const Operand<T>& o, i64 r, i64 c, i64 end) {
    constexpr std::int32_t beyond = std::numeric_limits<std::int32_t>::max();
    const auto [data, row, start, full_number, full, n] = o.zc;
    double* sums = sums_.data();
    Left* const begin = left_.data() + (o.xs.start[r] - o.xs.start[band_]);
    i64& many = many_[r - band_];
    if (reached_[r - band_] != c) {
      many = 0;
      for (i64 a = o.xs.start[r]; a < o.xs.start[r + 1]; ++a) {
        const std::int32_t j = o.xs.index[a], number = full_number[j];
        const i64 place = number < 0 ? first_from(o.zc, j, c) : number;
        begin[many++] = {static_cast<double>(o.xs.data[a]), place, number < 0 ? row[place] : -1};
      }
    }
    i64 kept = 0;
    for (i64 i = 0; i < many; ++i) {
      Left one = begin[i];
      if (one.next < 0) {
        add_multiple(one.x, full + one.place * n + c, end - c, sums);
      } else {
        for (; one.next < end; one.next = row[++one.place]) {
          double& sum = sums[one.next - c];
          sum = multiply_add<double>(one.x, data[one.place], sum);
        }
      }
      begin[kept] = one;
      kept += one.next != beyond;
    }
    many = kept;
    reached_[r - band_] = end;
  }

  static void add_multiple(double x, const double* z, i64 size, double* sums) {
    i64 j = 0;
    for (; j + lanes<double> <= size; j += lanes<double>)
      store(sums + j, multiply_add_each<double>(splat<double>(x), load(z + j), load(sums + j)));
    for (; j < size; ++j) sums[j] = multiply_add<double>(x, z[j], sums[j]);
  }

  // The first entry of column j in row c or below it; the list's end if there is none.
  static i64 first_from(const Columns<T>& z, std::int32_t j, i64 c) {
    i64 low = z.start[j], high = z.start[j + 1] - 1;
    while (low < high) {
      const i64 middle = low + (high - low) / 2;
      if (z.row[middle] < c) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Without lists: spread the left row, and visit the entries of the right ones.
  void visit(const Operand<T>& o, i64 r, i64 c, i64 have) {
    for (i64 a = o.xs.start[r]; a < o.xs.start[r + 1]; ++a) spread_[o.xs.index[a]] = o.xs.data[a];
    for (i64 j = 0; j < have; ++j) {
      double sum = 0;
      for (i64 b = o.zs.start[c + j]; b < o.zs.start[c + j + 1]; ++b)
        sum = multiply_add<double>(spread_[o.zs.index[b]], o.zs.data[b], sum);
      sums_[j] = sum;
    }
    for (i64 a = o.xs.start[r]; a < o.xs.start[r + 1]; ++a) spread_[o.xs.index[a]] = T(0);
  }

  // |x|^2 + |z|^2 - 2 <x, z>; of points that are nearer to each other than a share of |x|^2 + |z|^2, by merging.
  void distances(const Operand<T>& o, i64 r, i64 c, i64 have, T* out) {
    const double x = o.x_squares[r], share = o.near;
    const double *z = o.z_squares + c, *sums = sums_.data();
    int near = 0;
    for (i64 j = 0; j < have; ++j) {
      const double both = x + z[j], apart = both - 2 * sums[j];
      near |= apart < share * both;
      out[j] = static_cast<T>(apart > 0 ? apart : 0);
    }
    if (!near) return;
    for (i64 j = 0; j < have; ++j)
      if (const double both = x + z[j]; both - 2 * sums[j] < share * both)
        out[j] = static_cast<T>(merged<T, Stat::sqdist>(o, r, c + j));
  }

  struct Left {  // a nonzero of a left row
    double x;
    i64 place;          // in the list of its column, or the number of the full column
    std::int32_t next;  // the row at this place, which says whether to go there at all; -1 for a full column
  };

  i64 band_ = 0;
  Buffer<double> sums_;
  Buffer<T> spread_;
  Buffer<Left> left_;           // of the rows of the band, the nonzeros that have not reached the end of their list
  Buffer<i64> many_, reached_;  // of each row, how many of them there are, and the column after the last
};

}  // namespace mercer::MERCER_ISA

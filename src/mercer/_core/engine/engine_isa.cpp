// The engine for one instruction set: this file is compiled once per MERCER_ISA with its own flags.
#include "strip.hpp"

namespace mercer::MERCER_ISA {

template <class T>
i64 padded(i64 cols) {
  return (cols + panel<T> - 1) / panel<T> * panel<T>;
}

// Copy one row and note whether all of it is finite (x - x is 0 exactly for finite x).
template <class T>
bool copy_finite(const T* from, i64 size, T* to) {
  V<T> doubt = {};
  i64 i = 0;
  for (; i + lanes<T> <= size; i += lanes<T>) {
    const V<T> v = load(from + i);
    doubt += v - v;
    store(to + i, v);
  }
  T rest = sum<T>(doubt);
  for (; i < size; ++i) {
    rest += from[i] - from[i];
    to[i] = from[i];
  }
  return rest == T(0);
}

// The largest absolute value, or NaN if one is not finite.
template <class T>
T extent(const T* x, i64 size) {
  V<T> most = {}, doubt = {};
  i64 i = 0;
  for (; i + lanes<T> <= size; i += lanes<T>) {
    const V<T> v = load(x + i);
    most = max<T>(abs<T>(v), most);
    doubt += v - v;
  }
  T top = 0, rest = sum<T>(doubt);
  for (int j = 0; j < lanes<T>; ++j) top = std::max(top, most[j]);
  for (; i < size; ++i) {
    top = std::max(top, std::abs(x[i]));
    rest += x[i] - x[i];
  }
  return rest == T(0) ? top : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
bool dense(const Job<T>& job, i64 r0, i64 r1, i64 c0, i64 c1, T* out, i64 ld) {
  Strip<T> strip(job);
  bool finite = true;
  for (i64 band = r0; band < r1; band += band_rows) {
    const i64 end = std::min(band + band_rows, r1);
    strip.enter(band, end);
    for (i64 c = c0 / panel<T> * panel<T>; c < c1; c += strip.width()) {
      const i64 cols = padded<T>(std::min(strip.width(), c1 - c));
      const i64 from = std::max(c, c0), to = std::min(c + cols, c1);
      for (i64 r = band; r < end; r += max_rows) {
        const int rows = static_cast<int>(std::min<i64>(max_rows, end - r));
        const T* k = strip.evaluate(r, rows, c, cols);
        for (int q = 0; q < rows; ++q)
          finite &= copy_finite(k + q * cols + (from - c), to - from, out + (r - r0 + q) * ld + (from - c0));
      }
    }
  }
  return finite;
}

// Copy, past the caches when what is written is far larger than they are.
template <class T>
void copy_out(const T* from, i64 size, T* to, bool past_caches) {
  if (!past_caches) {
    std::copy_n(from, size, to);
    return;
  }
  constexpr i64 L = lanes<T>;
  const i64 lead = (register_bytes - reinterpret_cast<std::uintptr_t>(to) % register_bytes) % register_bytes / sizeof(T);
  i64 i = 0;
  for (; i < std::min(lead, size); ++i) to[i] = from[i];
  for (; i + L <= size; i += L) stream(to + i, load(from + i));
  for (; i < size; ++i) to[i] = from[i];
}

// Write the transpose of a rows x cols block (leading dimension lb) to out, each row of it from end to end.
template <class T>
void copy_transposed(const T* block, i64 lb, i64 rows, i64 cols, T* out, i64 ld, bool past_caches) {
  constexpr int L = lanes<T>;
  alignas(64) T turned[L][band_rows];
  for (i64 c = 0; c < cols; c += L) {
    const i64 have = std::min<i64>(L, cols - c);
    i64 r = 0;
    for (; r + L <= rows; r += L) {
      V<T> a[L];
      for (int i = 0; i < L; ++i) a[i] = load(block + (r + i) * lb + c);
      transpose<T>(a);
      for (int i = 0; i < L; ++i) store(turned[i] + r, a[i]);
    }
    for (; r < rows; ++r)
      for (i64 i = 0; i < have; ++i) turned[i][r] = block[r * lb + c + i];
    for (i64 i = 0; i < have; ++i) copy_out(turned[i], rows, out + (c + i) * ld, past_caches);
  }
}

template <class T>
bool dense_symmetric(const Job<T>& job, i64 r0, i64 r1, T* out) {
  Strip<T> strip(job);
  const i64 n = job.n;
  bool finite = true;
  const bool past_caches = n * n * static_cast<i64>(sizeof(T)) > large;
  const i64 ld = std::min(strip.width(), padded<T>(n));  // small for a small matrix: large memory is slow to come by
  Buffer<T> block(static_cast<std::size_t>(std::min(band_rows, r1 - r0) * ld));
  for (i64 band = r0; band < r1; band += band_rows) {
    const i64 end = std::min(band + band_rows, r1);
    strip.enter(band, end);
    for (i64 c = band / panel<T> * panel<T>; c < n; c += strip.width()) {
      const i64 cols = padded<T>(std::min(strip.width(), n - c)), to = std::min(c + cols, n);
      for (i64 r = band; r < end; r += max_rows) {
        const int rows = static_cast<int>(std::min<i64>(max_rows, end - r));
        const i64 from = std::max(c, r / panel<T> * panel<T>), part = c + cols - from;  // nothing left of the diagonal
        if (part <= 0) continue;
        const T* k = strip.evaluate(r, rows, from, part);
        for (int q = 0; q < rows; ++q)
          finite &= copy_finite(k + q * part, to - from, block.data() + (r - band + q) * ld + (from - c));
      }
      // Left of and on the diagonal block the transpose would overwrite what it should equal.
      const i64 clear = std::clamp(end, c, to);
      for (i64 r = band; r < end; ++r) {
        const T* row = block.data() + (r - band) * ld;
        for (i64 j = std::max(r, c); j < clear; ++j) out[r * n + j] = out[j * n + r] = row[j - c];
        copy_out(row + (clear - c), to - clear, out + r * n + clear, past_caches);
      }
      copy_transposed(block.data() + (clear - c), ld, end - band, to - clear, out + clear * n + band, n,
                      past_caches);
    }
  }
  if (past_caches) stream_done();
  return finite;
}

// Few right-hand sides: one dot product each. v is column-major here, `lv` its column length.
template <class T>
void apply_rows(const T* k, int rows, i64 cols, i64 have, const T* v, i64 lv, i64 nv, double* out) {
  for (int q = 0; q < rows; ++q)
    for (i64 s = 0; s < nv; ++s) {
      V<T> sums[2] = {};
      const T* row = k + q * cols;
      const T* col = v + s * lv;
      i64 j = 0;
      for (; j + 2 * lanes<T> <= have; j += 2 * lanes<T>) {
        sums[0] += load(row + j) * load(col + j);
        sums[1] += load(row + j + lanes<T>) * load(col + j + lanes<T>);
      }
      double total = double(sum<T>(sums[0] + sums[1]));
      for (; j < have; ++j) total += double(row[j]) * col[j];
      out[q * nv + s] += total;
    }
}

// One right-hand side of a symmetric product: each value is read once and used twice, for its row and for its column.
template <class T>
void apply_both(const T* k, i64 cols, const T* v, const T* factor, T* below, double* out) {
  V<T> sums[max_rows] = {}, factors[max_rows];
  for (int q = 0; q < max_rows; ++q) factors[q] = splat<T>(factor[q]);
  for (i64 j = 0; j < cols; j += lanes<T>) {
    const V<T> x = load(v + j);
    V<T> down[2] = {load(below + j), {}};
#pragma GCC unroll 8
    for (int q = 0; q < max_rows; ++q) {
      V<T> value = load(k + q * cols + j);
      keep(value);
      sums[q] += value * x;
      down[q & 1] += value * factors[q];
    }
    store(below + j, down[0] + down[1]);
  }
  for (int q = 0; q < max_rows; ++q) out[q] += double(sum<T>(sums[q]));
}

// Many right-hand sides: v row-major with leading dimension lv, a multiple of the lanes.
template <class T>
void apply_rows_wide(const T* k, int rows, i64 cols, i64 have, const T* v, i64 lv, i64 nv, double* out) {
  for (i64 s = 0; s < nv; s += lanes<T>) {
    V<T> sums[max_rows] = {};
    for (i64 j = 0; j < have; ++j) {
      const V<T> x = load(v + j * lv + s);
      for (int q = 0; q < max_rows; ++q) sums[q] += k[(q < rows ? q : 0) * cols + j] * x;
    }
    for (int q = 0; q < rows; ++q)
      for (i64 i = 0; i < std::min<i64>(lanes<T>, nv - s); ++i) out[q * nv + s + i] += double(sums[q][i]);
  }
}

// Right-hand sides laid out for the consumer: columns when few, padded rows when many.
template <class T>
class Vectors {
 public:
  Vectors(const T* v, i64 m, i64 k) : k_(k), wide_(k >= lanes<T> / 2), lv_(wide_ ? (k + lanes<T> - 1) / lanes<T> * lanes<T> : m) {
    data_.assign(static_cast<std::size_t>(wide_ ? m * lv_ : m * k), T(0));
    for (i64 i = 0; i < m; ++i)
      for (i64 s = 0; s < k; ++s) data_[wide_ ? i * lv_ + s : s * m + i] = v[i * k + s];
  }
  // out[rows, :] += values[rows, have] times the vectors' entries c .. c + have
  void apply(const T* values, int rows, i64 cols, i64 have, i64 c, double* out) const {
    if (wide_) apply_rows_wide(values, rows, cols, have, data_.data() + c * lv_, lv_, k_, out);
    else apply_rows(values, rows, cols, have, data_.data() + c, lv_, k_, out);
  }

 private:
  i64 k_;
  bool wide_;
  i64 lv_;
  Buffer<T> data_;
};

template <class T>
void matvec(const Job<T>& job, i64 r0, i64 r1, const T* v, i64 k, double* out) {
  Strip<T> strip(job);
  const Vectors<T> vectors(v, job.m, k);
  for (i64 band = r0; band < r1; band += band_rows) {
    const i64 end = std::min(band + band_rows, r1);
    strip.enter(band, end);
    for (i64 c = 0; c < job.m; c += strip.width()) {
      const i64 have = std::min(strip.width(), job.m - c), cols = padded<T>(have);
      for (i64 r = band; r < end; r += max_rows) {
        const int rows = static_cast<int>(std::min<i64>(max_rows, end - r));
        vectors.apply(strip.evaluate(r, rows, c, cols), rows, cols, have, c, out + (r - r0) * k);
      }
    }
  }
}

template <class T>
void matvec_symmetric(const Job<T>& job, i64 first, i64 step, const T* v, i64 k, double* out) {
  Strip<T> strip(job);
  const i64 n = job.n;
  const Vectors<T> vectors(v, n, k);
  Buffer<T> block(static_cast<std::size_t>(max_rows * strip.width()));
  Buffer<T> below(static_cast<std::size_t>(strip.width() * k));  // sums over the band's rows, column by column
  for (i64 band = first * band_rows; band < n; band += step * band_rows) {
    const i64 end = std::min(band + band_rows, n);
    strip.enter(band, end);
    for (i64 c = band / panel<T> * panel<T>; c < n; c += strip.width()) {
      const i64 have = std::min(strip.width(), n - c), cols = padded<T>(have);
      std::fill(below.begin(), below.end(), T(0));
      for (i64 r = band; r < end; r += max_rows) {
        const int rows = static_cast<int>(std::min<i64>(max_rows, end - r));
        const T* values = strip.evaluate(r, rows, c, cols);
        if (k == 1 && rows == max_rows && c >= r + rows && have == cols) {
          apply_both(values, cols, v + c, v + r, below.data(), out + r);
          continue;
        }
        if (c < r + rows) {  // the diagonal crosses: keep j >= row, count the diagonal once
          std::copy_n(values, rows * cols, block.data());
          for (int q = 0; q < rows; ++q)
            std::fill_n(block.data() + q * cols, std::clamp<i64>(r + q - c, 0, cols), T(0));
          values = block.data();
          vectors.apply(values, rows, cols, have, c, out + r * k);
          for (int q = 0; q < rows; ++q)
            if (r + q >= c && r + q < c + cols) block[q * cols + (r + q - c)] = T(0);
        } else {
          vectors.apply(values, rows, cols, have, c, out + r * k);
        }
        for (i64 s = 0; s < k; ++s) {
          T factor[max_rows] = {};
          for (int q = 0; q < rows; ++q) factor[q] = v[(r + q) * k + s];
          T* sums = below.data() + s * strip.width();
          if (rows == max_rows) {
            for (i64 j = 0; j < cols; j += lanes<T>) {
              V<T> sum = load(sums + j);
              for (int q = 0; q < max_rows; ++q) sum += load(values + q * cols + j) * factor[q];
              store(sums + j, sum);
            }
          } else {
            for (int q = 0; q < rows; ++q)
              for (i64 j = 0; j < cols; ++j) sums[j] += values[q * cols + j] * factor[q];
          }
        }
      }
      for (i64 s = 0; s < k; ++s)
        for (i64 j = 0; j < have; ++j) out[(c + j) * k + s] += double(below[s * strip.width() + j]);
    }
  }
}

}  // namespace mercer::MERCER_ISA

namespace mercer {
MERCER_TABLES(Engine, panel<T>, band_rows, even_chunk<T>, extent<T>, pack<T>, norms<T>, sparse_norms<T>, dense<T>,
              dense_symmetric<T>, matvec<T>, matvec_symmetric<T>)
}  // namespace mercer

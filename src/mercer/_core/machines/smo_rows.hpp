// The rows of the matrix on which SMO works, whose shapes differ: whole, gathered, or joined of blocks.
#pragma once

#include "../engine/statistics.hpp"
#include "smo.hpp"

namespace mercer::MERCER_ISA {

// Where the rows of a problem's matrix come from. SMO looks at few of them: those of other shapes than a plain matrix
// are put together when they are first asked for.
template <class T>
struct Plain {
  using value = T;
  static constexpr bool padded = false;  // whether rows have zeros up to whole registers
  const T* K;
  i64 ld;
  const T* row(i64 i) { return K + i * ld; }
  T diag(i64 i) const { return K[i * ld + i]; }
};
template <class T>
struct Lazy {
  using value = T;
  static constexpr bool padded = false;
  Lazy(i64 n, i64 ld, T* rows) : rows_(rows), n_(n), ld_(ld), ready_(static_cast<std::size_t>(n), char(0)) {}

 protected:
  T* rows_;
  i64 n_, ld_;
  Buffer<char> ready_;
};
// Some rows and columns of a matrix, in rows of whole registers with zeros at their ends. On AVX-512 each register of
// the matrix is packed at once where enough of its entries are taken.
template <class T>
struct Gathered : Lazy<T> {
  static constexpr bool padded = true;
  // Room for at least one more register at the end of a row; rows a page apart would fall into the same cache lines.
  static i64 stride(i64 n) {
    constexpr i64 two = 2 * lanes<T>;
    const i64 ld = (n + lanes<T> + two - 1) / two * two;
    return ld * i64(sizeof(T)) % 4096 ? ld : ld + two;
  }
  Gathered(const T* K, i64 ld, const std::int32_t* at, i64 n, T* rows)
      : Lazy<T>(n, stride(n), rows), K(K), ld(ld), at(at) {
#if defined(__AVX512F__)
    constexpr std::int32_t L = lanes<T>;
    for (i64 j = 0; j < n; ++j) {
      const std::int32_t first = at[j] / L * L;
      const unsigned bit = 1u << (at[j] - first);
      if (pieces_.empty() || pieces_.back().first != first || pieces_.back().taken >= bit)
        pieces_.push_back({first, 0});
      pieces_.back().taken |= bit;
    }
    if (n < 3 * i64(pieces_.size())) pieces_.clear();
#endif
  }
  const T* row(i64 i) {
    T* to = this->rows_ + i * this->ld_;
    if (!this->ready_[i]) {
      pick(K + at[i] * ld, to);
      std::fill(to + this->n_, to + this->ld_, T(0));
      this->ready_[i] = 1;
    }
    return to;
  }
  T diag(i64 i) const { return K[at[i] * ld + at[i]]; }

 private:
  void pick(const T* from, T* to) const {
#if defined(__AVX512F__)
    for (const Piece& p : pieces_) {
      if constexpr (sizeof(T) == 4)
        _mm512_storeu_ps(to, _mm512_maskz_compress_ps(__mmask16(p.taken), _mm512_maskz_loadu_ps(__mmask16(p.taken), from + p.first)));
      else
        _mm512_storeu_pd(to, _mm512_maskz_compress_pd(__mmask8(p.taken), _mm512_maskz_loadu_pd(__mmask8(p.taken), from + p.first)));
      to += __builtin_popcount(p.taken);
    }
    if (!pieces_.empty()) return;
#endif
    for (i64 j = 0; j < this->n_; ++j) to[j] = from[at[j]];
  }
  const T* K;
  i64 ld;
  const std::int32_t* at;
#if defined(__AVX512F__)
  struct Piece {
    std::int32_t first;  // of a register's entries
    unsigned taken;      // which of them, one bit for each
  };
  Buffer<Piece> pieces_;
#endif
};
template <class T>
struct Joined : Lazy<T> {
  Joined(const Pair<T>& p, T* rows) : Lazy<T>(p.n + p.m, p.n + p.m, rows), p(p) {}
  const T* row(i64 i) {
    T* to = this->rows_ + i * this->n_;
    if (!this->ready_[i]) {
      if (i < p.n) {
        std::copy_n(p.a + i * p.n, p.n, to);
        std::copy_n(p.c + i * p.ld, p.m, to + p.n);
      } else {
        for (i64 j = 0; j < p.n; ++j) to[j] = p.c[j * p.ld + i - p.n];
        std::copy_n(p.b + (i - p.n) * p.m, p.m, to + p.n);
      }
      this->ready_[i] = 1;
    }
    return to;
  }
  T diag(i64 i) const { return i < p.n ? p.a[i * p.n + i] : p.b[(i - p.n) * p.m + i - p.n]; }
  Pair<T> p;
};

}  // namespace mercer::MERCER_ISA

// Sparse points as Python holds them.
#pragma once

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "../bindings.hpp"
#include "engine.hpp"

namespace mercer {

// Compressed rows, checked once: their own, made of the nonzeros of a matrix, or those of arrays that are kept alive.
template <class T>
class PyRows {
 public:
  PyRows(Array<T> data, Array<std::int32_t> index, Array<i64> start, i64 d) : d_(d), held_{data, index, start} {
    require(start.size() > 0 && 0 < d && d < i64(1) << 31, "malformed sparse rows");
    n_ = i64(start.size()) - 1;
    rows_ = {data.data(), index.data(), start.data()};
    bool sound = rows_.start[0] >= 0;
    for (i64 i = 0; i < n_; ++i) sound &= rows_.start[i] <= rows_.start[i + 1];
    require(sound && rows_.start[n_] <= i64(data.size()) && rows_.start[n_] <= i64(index.size()),
            "malformed sparse rows");
    for (i64 i = rows_.start[0]; i < rows_.start[n_]; ++i) sound &= rows_.index[i] >= 0 && rows_.index[i] < d;
    require(sound, "malformed sparse rows");
  }

  explicit PyRows(Array<T> x) {
    require(x.ndim() == 2 && x.shape(1) > 0 && i64(x.shape(1)) < i64(1) << 31, "malformed sparse rows");
    n_ = x.shape(0);
    d_ = x.shape(1);
    const T* from = x.data();
    start_.reserve(n_ + 1);
    start_.push_back(0);
    i64 size = 0;
    for (i64 i = 0; i < n_; ++i, from += d_) {
      data_.resize(std::max<std::size_t>(size + d_, data_.size()));
      index_.resize(data_.size());
      for (i64 k = 0; k < d_; ++k) {  // written whether or not it counts: a branch would often be mispredicted
        data_[size] = from[k];
        index_[size] = static_cast<std::int32_t>(k);
        size += from[k] != 0;
      }
      if (data_.size() < std::size_t(size + d_)) data_.resize(2 * (size + d_)), index_.resize(data_.size());
      start_.push_back(size);
    }
    data_.resize(size);
    index_.resize(size);
    rows_ = {data_.data(), index_.data(), start_.data()};
  }

  // Some of the rows, in the order given.
  PyRows(const PyRows& all, Array<i64> chosen) : n_(chosen.size()), d_(all.d_) {
    start_.reserve(n_ + 1);
    start_.push_back(0);
    for (i64 i = 0; i < n_; ++i) {
      const i64 r = chosen.data()[i];
      require(0 <= r && r < all.n_, "a row outside the rows");
      const i64 a = all.rows_.start[r], b = all.rows_.start[r + 1];
      data_.insert(data_.end(), all.rows_.data + a, all.rows_.data + b);
      index_.insert(index_.end(), all.rows_.index + a, all.rows_.index + b);
      start_.push_back(i64(data_.size()));
    }
    rows_ = {data_.data(), index_.data(), start_.data()};
  }
  PyRows(const PyRows&) = delete;

  i64 size() const { return n_; }
  i64 width() const { return d_; }
  i64 nonzeros() const { return rows_.start[n_] - rows_.start[0]; }
  i64 longest() const {
    i64 most = 0;
    for (i64 i = 0; i < n_; ++i) most = std::max(most, rows_.start[i + 1] - rows_.start[i]);
    return most;
  }
  const Sparse<T>& get() const { return rows_; }
  const Columns<T>& columns() const { return columns_; }

  // Keep the entries by column, too.
  void list_columns() {
    constexpr std::int32_t beyond = std::numeric_limits<std::int32_t>::max();
    if (columns_.start) return;
    require(n_ < beyond, "too many rows for lists by column");
    list_start_.assign(d_ + 1, 0);
    for (i64 a = rows_.start[0]; a < rows_.start[n_]; ++a) ++list_start_[rows_.index[a] + 1];
    for (i64 j = 0; j < d_; ++j) list_start_[j + 1] += list_start_[j] + 1;
    list_data_.assign(nonzeros() + d_, T(0));
    list_row_.assign(nonzeros() + d_, beyond);
    std::vector<i64> next(list_start_.begin(), list_start_.end() - 1);
    for (i64 i = 0; i < n_; ++i)
      for (i64 a = rows_.start[i]; a < rows_.start[i + 1]; ++a) {
        const i64 k = next[rows_.index[a]]++;
        list_data_[k] = rows_.data[a];
        list_row_[k] = static_cast<std::int32_t>(i);
      }
    fill_columns();
    columns_ = {list_data_.data(), list_row_.data(), list_start_.data(), full_number_.data(), full_.data(), n_};
  }

  void norms(Output<double> out) const {
    require(i64(out.size()) == n_, "out has the wrong size");
    table<Engine<T>>().sparse_norms(rows_, n_, out.data());
  }

 private:
  // Keep columns with their zeros, too, where these are few enough that a vector at a time is faster than a row at a time
  // (an eighth, by measurement): the fullest ones, no more numbers in all than there are nonzeros.
  void fill_columns() {
    const auto entries = [&](std::int32_t j) { return list_start_[j + 1] - list_start_[j] - 1; };
    std::vector<std::int32_t> chosen;
    for (i64 j = 0; j < d_; ++j)
      if (const auto column = static_cast<std::int32_t>(j); n_ && entries(column) * 8 >= n_) chosen.push_back(column);
    const i64 most = n_ ? nonzeros() / n_ : 0;
    if (i64(chosen.size()) > most) {
      std::nth_element(chosen.begin(), chosen.begin() + most, chosen.end(),
                       [&](std::int32_t a, std::int32_t b) { return entries(a) > entries(b); });
      chosen.resize(most);
    }
    full_number_.assign(d_, -1);
    full_.assign(chosen.size() * n_, 0.0);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      full_number_[chosen[i]] = static_cast<std::int32_t>(i);
      for (i64 k = list_start_[chosen[i]]; k + 1 < list_start_[chosen[i] + 1]; ++k)
        full_[i * n_ + list_row_[k]] = list_data_[k];
    }
  }

  i64 n_ = 0, d_ = 0;
  Sparse<T> rows_;
  Columns<T> columns_;
  std::vector<T> list_data_;
  std::vector<std::int32_t> list_row_;
  std::vector<i64> list_start_;
  std::vector<std::int32_t> full_number_;
  std::vector<double> full_;
  std::vector<T> data_;
  std::vector<std::int32_t> index_;
  std::vector<i64> start_;
  std::tuple<Array<T>, Array<std::int32_t>, Array<i64>> held_;
};

}  // namespace mercer

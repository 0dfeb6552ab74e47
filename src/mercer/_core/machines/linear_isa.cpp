// Looks at the rows of a linear model for one instruction set: this file is compiled once per MERCER_ISA.
#include "linear.hpp"

#include "../engine/simd.hpp"

namespace mercer::MERCER_ISA {

using D = V<double>;
constexpr int L = lanes<double>;
constexpr int rows_at_once = 8;
constexpr int parts = rows_at_once / L;  // vectors with one entry for each of those rows
constexpr int gathered_rows = 64;

// Numbers of a row, as doubles.
template <class T>
inline D wide(const T* p) {
  if constexpr (sizeof(T) == 8) {
    return load<double>(p);
  } else {
    typedef float half __attribute__((vector_size(register_bytes / 2)));
    half h;
    std::memcpy(&h, p, sizeof h);
    return __builtin_convertvector(h, D);
  }
}
// The same of the last few numbers of a row, with zeros after them.
template <class T>
inline D wide(const T* p, int count) {
#if defined(__AVX512F__)
  const auto mask = static_cast<__mmask8>((1u << count) - 1u);
  if constexpr (sizeof(T) == 8) return (D)_mm512_maskz_loadu_pd(mask, p);
  else return (D)_mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, p));
#else
  D v{};
  for (int k = 0; k < L; ++k)
    if (k < count) v[k] = double(p[k]);
  return v;
#endif
}

// Numbers in memory of its own, in whole vectors, zero at first.
class Padded {
 public:
  explicit Padded(i64 size, const double* from = nullptr) : data_(new double[size / 8 * 8 + 8]()) {
    if (from)
      for (i64 k = 0; k < size; ++k) data_[k] = from[k];
  }
  ~Padded() { delete[] data_; }
  Padded(const Padded&) = delete;
  double* data() const { return data_; }

 private:
  double* data_;
};

// A few rows next to each other; the last one repeats where there are fewer, and then counts for nothing.
template <class T>
struct Group {
  const T* row[rows_at_once];
  int size;
  Group(const LinearData<T>& data, i64 first, i64 last)
      : size(static_cast<int>(last - first < rows_at_once ? last - first : rows_at_once)) {
    for (int r = 0; r < rows_at_once; ++r) row[r] = data.x + (first + (r < size ? r : size - 1)) * data.d;
    // `add` goes from row to row, which is no stream that the processor would fetch ahead by itself.
    if (first + 2 * rows_at_once <= last) {
      const char* next = reinterpret_cast<const char*>(row[0] + rows_at_once * data.d);
      for (i64 k = 0; k < i64(sizeof(T)) * rows_at_once * data.d; k += 64) __builtin_prefetch(next + k);
    }
  }
};

// The inner products of a group, row after row: in this order the processor fetches ahead. K vectors of w stay in
// registers.
template <int K, class T>
inline void dots(const Group<T>& g, i64 d, const double* w, D* sums) {
  D v[K + 1];
  for (int k = 0; k <= K; ++k) v[k] = load<double>(w + k * L);
  const i64 whole = d / L * L;
  const int left = static_cast<int>(d - whole);
  for (int r = 0; r < rows_at_once; ++r) {
    const T* x = g.row[r];
    D one = wide(x + whole, left) * v[K], two{};
    for (int k = 0; k + 1 < K; k += 2) {
      one = multiply_add_each<double>(wide(x + k * L), v[k], one);
      two = multiply_add_each<double>(wide(x + (k + 1) * L), v[k + 1], two);
    }
    if constexpr (K % 2) one = multiply_add_each<double>(wide(x + (K - 1) * L), v[K - 1], one);
    sums[r] = one + two;
  }
}

template <class T>
inline void dots_of_many(const Group<T>& g, i64 d, const double* w, D* sums) {
  const i64 whole = d / L * L;
  const int left = static_cast<int>(d - whole);
  const D last = left ? load<double>(w + whole) : D{};
  for (int r = 0; r < rows_at_once; r += 2) {
    const T *x = g.row[r], *y = g.row[r + 1];
    D one = wide(x + whole, left) * last, two = wide(y + whole, left) * last;
    for (i64 j = 0; j < whole; j += L) {
      const D v = load<double>(w + j);
      one = multiply_add_each<double>(wide(x + j), v, one);
      two = multiply_add_each<double>(wide(y + j), v, two);
    }
    sums[r] = one;
    sums[r + 1] = two;
  }
}

template <class T>
inline void dots(const Group<T>& g, i64 d, const double* w, double shift, D* f) {
  D sums[rows_at_once];
  switch (d / L) {
    case 0: dots<0>(g, d, w, sums); break;
    case 1: dots<1>(g, d, w, sums); break;
    case 2: dots<2>(g, d, w, sums); break;
    case 3: dots<3>(g, d, w, sums); break;
    case 4: dots<4>(g, d, w, sums); break;
    case 5: dots<5>(g, d, w, sums); break;
    case 6: dots<6>(g, d, w, sums); break;
    case 7: dots<7>(g, d, w, sums); break;
    case 8: dots<8>(g, d, w, sums); break;
    default: dots_of_many(g, d, w, sums);
  }
  for (int k = 0; k < parts; ++k) {
    transpose<double>(sums + k * L);
    f[k] = splat<double>(shift);
    for (int r = 0; r < L; ++r) f[k] += sums[k * L + r];
  }
}

template <class T>
inline void add(const Group<T>& g, i64 d, const D* beta, double* pull) {
  constexpr int half = rows_at_once / 2;
  double b[rows_at_once];
  std::memcpy(b, beta, sizeof b);
  D factor[rows_at_once];
  for (int r = 0; r < rows_at_once; ++r) factor[r] = splat<double>(b[r]);
  const auto column = [&](i64 j, auto read) {
    D one = load<double>(pull + j), two{};
    for (int r = 0; r < half; ++r) {
      one = multiply_add_each<double>(read(g.row[r] + j), factor[r], one);
      two = multiply_add_each<double>(read(g.row[r + half] + j), factor[r + half], two);
    }
    store<double>(pull + j, one + two);
  };
  i64 j = 0;
  for (; j + L <= d; j += L) column(j, [](const T* p) { return wide(p); });
  const int left = static_cast<int>(d - j);
  if (left) column(j, [left](const T* p) { return wide(p, left); });
}

// What the losses of one side of a group need. Rows that repeat have no cost.
struct Terms {
  D z[parts], sign[parts], target[parts], cost[parts];
};
inline void read(const double* from, bool one, int size, double rest, D* to) {
  if (one || size < rows_at_once) {
    double v[rows_at_once];
    for (int r = 0; r < rows_at_once; ++r) v[r] = r < size ? from[one ? 0 : r] : rest;
    std::memcpy(to, v, sizeof v);
  } else {
    std::memcpy(to, from, rows_at_once * sizeof(double));
  }
}
template <class T>
inline void read(const LinearData<T>& data, i64 i, int size, i64 side, const D* f, Terms& t) {
  read(data.sign + side * data.n + i, false, size, 1.0, t.sign);
  read(data.target + (data.one_target ? side : side * data.n + i), data.one_target, size, 0.0, t.target);
  read(data.cost + (data.one_cost ? 0 : i), data.one_cost, size, 0.0, t.cost);
  for (int k = 0; k < parts; ++k) t.z[k] = t.target[k] - t.sign[k] * f[k];
}

// A tile of sum a a': I rows of it, J vectors wide, from the rows of a buffer.
template <int I, int J>
inline void tile(const double* rows, i64 count, i64 width, i64 i, i64 j, double* gram) {
  D sums[I][J] = {};
  for (i64 k = 0; k < count; ++k, rows += width) {
    D right[J];
    for (int b = 0; b < J; ++b) right[b] = load<double>(rows + j + b * L);
    for (int a = 0; a < I; ++a) {
      const D left = splat<double>(rows[i + a]);
      for (int b = 0; b < J; ++b) sums[a][b] = multiply_add_each<double>(left, right[b], sums[a][b]);
    }
  }
  for (int a = 0; a < I; ++a)
    for (int b = 0; b < J; ++b) {
      double* to = gram + (i + a) * width + j + b * L;
      store<double>(to, load<double>(to) + sums[a][b]);
    }
}

// Gathers rows and adds their products to the upper half of a matrix, many rows at a time.
class Products {
 public:
  Products(double* gram, i64 d) : gram_(gram), width_((d + 8) / 8 * 8), rows_(new double[gathered_rows * width_]()) {}
  ~Products() {
    flush();
    delete[] rows_;
  }
  Products(const Products&) = delete;

  template <class T>
  void take(const T* x, i64 d, const double* centre, const double* inverse_scale, double weight) {
    const double root = __builtin_sqrt(weight);
    double* to = rows_ + held_ * width_;
    const D r = splat<double>(root);
    i64 j = 0;
    for (; j + L <= d; j += L)
      store<double>(to + j, (wide(x + j) - load<double>(centre + j)) * (load<double>(inverse_scale + j) * r));
    for (; j < d; ++j) to[j] = (double(x[j]) - centre[j]) * (inverse_scale[j] * root);
    to[d] = root;
    if (++held_ == gathered_rows) flush();
  }

 private:
  static constexpr int I = register_bytes == 64 ? 8 : 4;  // as many sums as there are registers for

  void flush() {
    if (!held_) return;
    for (i64 i = 0; i < width_; i += I)
      for (i64 j = i / L * L; j < width_;) {
        const i64 left = (width_ - j) / L;
        if (left >= 3) tile<I, 3>(rows_, held_, width_, i, j, gram_), j += 3 * L;
        else if (left == 2) tile<I, 2>(rows_, held_, width_, i, j, gram_), j += 2 * L;
        else tile<I, 1>(rows_, held_, width_, i, j, gram_), j += L;
      }
    held_ = 0;
  }

  double* gram_;
  i64 width_, held_ = 0;
  double* rows_;
};

inline bool drawn(i64 row, i64 thin) {  // one of `thin` rows, whatever their order (the finaliser of SplitMix64)
  if (thin <= 1) return true;
  std::uint64_t h = static_cast<std::uint64_t>(row) + 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return (h ^ (h >> 31)) % static_cast<std::uint64_t>(thin) == 0;
}

template <class T>
LinearSums sweep(const LinearData<T>& data, const LinearSweep& s, i64 first, i64 last) {
  const i64 d = data.d;
  LinearSums out;
  Products products(s.gram, s.gram ? d : 0);
  const Padded w(d, s.w), centre(d, s.centre), inverse_scale(d, s.inverse_scale), pull(d);
  const D slope = splat<double>(s.half > 0 ? 0.5 / s.half : 1e300), zero{}, unit = splat<double>(1.0);
  D risk{}, gain{}, square{}, total{};
  for (i64 i = first; i < last; i += rows_at_once) {
    const Group<T> g(data, i, last);
    D f[parts], beta[parts] = {}, weight[parts] = {};
    dots(g, d, w.data(), s.shift, f);
    for (i64 side = 0; side < data.sides; ++side) {
      Terms t;
      read(data, i, g.size, side, f, t);
      D alpha[parts];
      for (int k = 0; k < parts; ++k) {
        const D z = t.z[k], cost = t.cost[k], loss = z > zero ? z : zero;
        if (data.squared) {
          alpha[k] = (cost + cost) * loss;
          weight[k] += z > zero ? cost + cost : zero;
          risk += cost * loss * loss;
          square += (cost + cost) * (loss + loss) * loss;
        } else {
          const D part = 0.5 + slope * z, above = part > zero ? part : zero;
          alpha[k] = cost * (above < unit ? above : unit);
          weight[k] += (part > zero) & (part < unit) ? cost * slope : zero;
          risk += cost * loss;
        }
        gain += t.target[k] * alpha[k];
        beta[k] += t.sign[k] * alpha[k];
      }
      if (s.alpha) std::memcpy(s.alpha + side * data.n + i, alpha, sizeof(double) * static_cast<std::size_t>(g.size));
    }
    for (int k = 0; k < parts; ++k) total += beta[k];
    add(g, d, beta, pull.data());
    double h[rows_at_once];
    std::memcpy(h, weight, sizeof h);
    for (int r = 0; r < rows_at_once; ++r) {
      if (h[r] == 0) continue;
      ++out.curved;
      if (s.band) s.band[out.curved - 1] = static_cast<std::int32_t>(i + r);
      if (s.gram && drawn(i + r, s.thin)) products.take(g.row[r], d, centre.data(), inverse_scale.data(), h[r]);
    }
  }
  for (i64 j = 0; j < d; ++j) s.pull[j] += pull.data()[j];
  s.pull[d] += sum<double>(total);
  out.risk = sum<double>(risk);
  out.gain = sum<double>(gain);
  out.square = sum<double>(square);
  return out;
}

template <class T>
LinearWorst proof(const LinearData<T>& data, const LinearProof& p, i64 first, i64 last) {
  const i64 d = data.d;
  const Padded w(d, p.w), apart(d, p.apart), pull(d);
  const D zero{}, unit = splat<double>(p.unit);
  D risk{}, gain{}, square{}, total{}, violation{}, far{};
  for (i64 i = first; i < last; i += rows_at_once) {
    const Group<T> g(data, i, last);
    D f[parts], implied[parts], beta[parts] = {};
    dots(g, d, w.data(), p.shift, f);
    dots(g, d, apart.data(), p.apart_shift, implied);
    for (i64 side = 0; side < data.sides; ++side) {
      Terms t;
      read(data, i, g.size, side, f, t);
      D given[parts];
      read(p.alpha + side * data.n + i, false, g.size, 0.0, given);
      for (int k = 0; k < parts; ++k) {
        const D z = t.z[k], cost = t.cost[k], alpha = given[k], loss = z > zero ? z : zero;
        D off;
        if (data.squared) {
          const D per = cost > zero ? alpha / cost : zero;
          risk += cost * loss * loss;
          square += alpha * per;
          off = cost > zero ? 0.5 * per - loss : zero;
        } else {
          const D moved = alpha + z / unit, above = moved > zero ? moved : zero;
          risk += cost * loss;
          off = unit * ((above < cost ? above : cost) - alpha);
        }
        violation = max<double>(violation, abs<double>(off));
        gain += t.target[k] * alpha;
        beta[k] += t.sign[k] * alpha;
      }
    }
    for (int k = 0; k < parts; ++k) {
      total += beta[k];
      far = max<double>(far, abs<double>(implied[k]));
    }
    add(g, d, beta, pull.data());
  }
  for (i64 j = 0; j < d; ++j) p.pull[j] += pull.data()[j];
  p.pull[d] += sum<double>(total);
  LinearWorst out{sum<double>(risk), sum<double>(gain), sum<double>(square), 0, 0};
  for (int k = 0; k < L; ++k) {
    out.violation = out.violation > violation[k] ? out.violation : violation[k];
    out.apart = out.apart > far[k] ? out.apart : far[k];
  }
  return out;
}

}  // namespace mercer::MERCER_ISA

namespace mercer {
MERCER_TABLES(Linear, sweep<T>, proof<T>)
}  // namespace mercer

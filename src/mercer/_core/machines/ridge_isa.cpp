// What ridge regression asks of the core, for one instruction set: this file is compiled once per MERCER_ISA.
#include "ridge.hpp"

#include "../engine/simd.hpp"

namespace mercer::MERCER_ISA {

using F = V<float>;
constexpr int L = lanes<float>;

// Some rows against a strip of columns, for K vectors: `across` collects what the rows add to the columns, `along` what
// the columns add to the rows.
template <int K, int R>
inline void rows_by_strip(const float* x, i64 width, i64 columns, const float* v, i64 stride, const float* at_rows,
                          float* across, double* out) {
  F along[K][R] = {}, weight[K][R];
  for (int k = 0; k < K; ++k)
    for (int r = 0; r < R; ++r) weight[k][r] = splat<float>(at_rows[k * stride + r]);
  for (i64 j = 0; j < columns; j += L) {
    F total[K], here[K];
    for (int k = 0; k < K; ++k) {
      total[k] = load<float>(across + k * columns + j);
      here[k] = load<float>(v + k * stride + j);
    }
    for (int r = 0; r < R; ++r) {
      const F value = load<float>(x + r * width + j);
      for (int k = 0; k < K; ++k) {
        total[k] += weight[k][r] * value;
        along[k][r] += here[k] * value;
      }
    }
    for (int k = 0; k < K; ++k) store<float>(across + k * columns + j, total[k]);
  }
  for (int k = 0; k < K; ++k)
    for (int r = 0; r < R; ++r) out[k * stride + r] += double(sum<float>(along[k][r]));
}

template <int K>
void multiply(const Band& band, const float* v, double* out, i64 stride) {
  constexpr int R = strip_rows / K > 0 ? strip_rows / K : 1;
  constexpr i64 strip = 2048 / K;
  alignas(64) float across[2048];
  v += band.first;
  out += band.first;
  for (i64 j = 0; j < band.width; j += strip) {
    const i64 columns = band.width - j < strip ? band.width - j : strip;
    for (i64 i = 0; i < K * columns; ++i) across[i] = 0;
    const float* x = band.values + j;
    i64 i = 0;
    for (; i + R <= band.rows; i += R)
      rows_by_strip<K, R>(x + i * band.width, band.width, columns, v + j, stride, v + i, across, out + i);
    for (; i < band.rows; ++i)
      rows_by_strip<K, 1>(x + i * band.width, band.width, columns, v + j, stride, v + i, across, out + i);
    for (int k = 0; k < K; ++k)
      for (i64 c = 0; c < columns; ++c) out[k * stride + j + c] += double(across[k * columns + c]);
  }
}

void product(const Band& band, const float* v, double* out, i64 count, i64 stride) {
  i64 k = 0;
  for (; k + 4 <= count; k += 4) multiply<4>(band, v + k * stride, out + k * stride, stride);
  for (; k + 2 <= count; k += 2) multiply<2>(band, v + k * stride, out + k * stride, stride);
  for (; k < count; ++k) multiply<1>(band, v + k * stride, out + k * stride, stride);
}

// Rows and alphas that run down the matrix side by side: each is a chain of dependent steps.
template <int R>
void chains(const Path& path, const double* q, i64 row, i64 rows, i64 alpha, double* squares, double* values) {
  using D = V<double>;
  constexpr int W = lanes<double>, P = 8 / W;
  D x[R][P] = {}, square[R][P] = {};
  const i64 step = path.alphas;
  for (i64 i = 0; i < path.n; ++i) {
    const double *l = path.below + i * step + alpha, *d = path.inverse + i * step + alpha;
    for (int p = 0; p < P; ++p) {
      const D below = load<double>(l + p * W), inverse = load<double>(d + p * W);
      for (int r = 0; r < R; ++r) {
        x[r][p] = splat<double>(q[(row + r) * path.n + i]) - below * x[r][p];
        square[r][p] += x[r][p] * x[r][p] * inverse;
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) store<double>(squares + (row + r) * step + alpha + p * W, square[r][p]);
  for (i64 m = 0; m < path.outputs; ++m) {
    D total[R][P] = {};
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < P; ++p) x[r][p] = D{};
    for (i64 i = 0; i < path.n; ++i) {
      const double *l = path.below + i * step + alpha, *z = path.right + (m * path.n + i) * step + alpha;
      for (int p = 0; p < P; ++p) {
        const D below = load<double>(l + p * W), right = load<double>(z + p * W);
        for (int r = 0; r < R; ++r) {
          x[r][p] = splat<double>(q[(row + r) * path.n + i]) - below * x[r][p];
          total[r][p] += x[r][p] * right;
        }
      }
    }
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < P; ++p)
        store<double>(values + (m * rows + row + r) * step + alpha + p * W, total[r][p]);
  }
}

void resolvent(const Path& path, const double* q, i64 rows, double* squares, double* values) {
  constexpr int R = 8;
  for (i64 alpha = 0; alpha < path.alphas; alpha += 8) {
    i64 row = 0;
    for (; row + R <= rows; row += R) chains<R>(path, q, row, rows, alpha, squares, values);
    for (; row < rows; ++row) chains<1>(path, q, row, rows, alpha, squares, values);
  }
}

}  // namespace mercer::MERCER_ISA

namespace mercer {
MERCER_TABLE(Ridge, product, resolvent)
}  // namespace mercer

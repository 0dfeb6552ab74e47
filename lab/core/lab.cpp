// The functions that the page calls: the core of the library with a C interface, compiled to WebAssembly.
//
// The engine and SMO are the library's own files, included as they are. Nothing can be thrown here: what may fail returns
// a number. Pointers are places in the module's memory, filled and read by the page (src/numeric/core.ts).
#include "engine/engine_isa.cpp"
#include "machines/smo_isa.cpp"

#include "smooth.hpp"

#define EXPORT(name) __attribute__((export_name(#name)))

namespace {

using namespace mercer;
using namespace mercer::baseline;

// A kernel's program and the points it compares, as the page writes them: how many instructions, registers, result,
// operands, row and column vectors; then 4 numbers for each instruction (op, dst, a, b), 4 for each operand (kind,
// features, left points, right points) and the vectors of one number for each left and each right point.
template <class T>
class Comparison {
 public:
  Comparison(const std::int32_t* plan, const double* constants, i64 n, i64 m) {
    const std::int32_t instructions = plan[0], operands = plan[3], rows = plan[4], cols = plan[5];
    job.program.registers = plan[1];
    job.program.result = plan[2];
    job.n = n;
    job.m = m;
    const std::int32_t* at = plan + 6;
    for (int i = 0; i < instructions; ++i, at += 4, constants += 3)
      job.program.code.push_back(
          {static_cast<Op>(at[0]), at[1], at[2], at[3], constants[0], constants[1], constants[2]});
    kept_.reserve(static_cast<std::size_t>(2 * operands + rows + cols));
    for (int i = 0; i < operands; ++i, at += 4) {
      const i64 d = at[1];
      Operand<T> o;
      o.kind = static_cast<Stat>(at[0]);
      o.d = d;
      o.x = keep(numbers(at[2]), n * d);
      Buffer<T> right(numbers(at[3]), numbers(at[3]) + m * d);
      kept_.emplace_back(static_cast<std::size_t>(padded<T>(m) * d));
      pack<T>(right.data(), m, d, kept_.back().data());
      o.z = kept_.back().data();
      job.operands.push_back(o);
    }
    for (int i = 0; i < rows; ++i) job.rows.push_back(keep(numbers(*at++), n));
    for (int i = 0; i < cols; ++i) job.cols.push_back(keep(numbers(*at++), m));
  }

  Job<T> job;

 private:
  static const double* numbers(std::int32_t place) {
    return reinterpret_cast<const double*>(static_cast<std::uintptr_t>(static_cast<std::uint32_t>(place)));
  }
  const T* keep(const double* from, i64 size) { return kept_.emplace_back(from, from + size).data(); }

  std::vector<Buffer<T>> kept_;
};

}  // namespace

extern "C" {

EXPORT(allocate) void* allocate(std::int32_t bytes) { return std::aligned_alloc(64, std::size_t(bytes + 63) / 64 * 64); }
EXPORT(release) void release(void* memory) { std::free(memory); }

// out[i * m + j] = k(x_i, z_j); the left and the right points are the same ones where it is symmetric. Returns whether all
// values are finite.
EXPORT(matrix)
std::int32_t matrix(const std::int32_t* plan, const double* constants, std::int32_t n, std::int32_t m, double* out,
                    std::int32_t symmetric) {
  const Comparison<double> comparison(plan, constants, n, m);
  return symmetric ? dense_symmetric(comparison.job, 0, n, out) : dense(comparison.job, 0, n, 0, m, out, m);
}

// out[i] = k(x_i, x_i).
EXPORT(diagonal)
std::int32_t diagonal(const std::int32_t* plan, const double* constants, std::int32_t n, double* out) {
  const Comparison<double> comparison(plan, constants, n, n);
  constexpr i64 side = panel<double>;  // the smallest block that the engine computes
  double block[side * side];
  bool finite = true;
  for (i64 from = 0; from < n; from += side) {
    const i64 to = std::min<i64>(from + side, n);
    finite &= dense(comparison.job, from, to, from, to, block, side);
    for (i64 i = from; i < to; ++i) out[i] = block[(i - from) * (side + 1)];
  }
  return finite;
}

// out[i * count + s] = sum_j k(x_i, z_j) v[j * count + s], in float32: for pictures.
EXPORT(picture)
void picture(const std::int32_t* plan, const double* constants, std::int32_t n, std::int32_t m, const double* v,
             std::int32_t count, double* out) {
  const Comparison<float> comparison(plan, constants, n, m);
  const Buffer<float> weights(v, v + m * count);
  std::fill_n(out, n * count, 0.0);
  matvec(comparison.job, 0, n, weights.data(), i64(count), out);
}

// The problem of smo.hpp with one group: vectors holds linear, upper, lower, width, plus, minus and the gradient, n numbers
// each; plus and minus are where it starts and where it ends. `outcome` is the struct of that name.
EXPORT(smo)
void smo(const double* K, std::int32_t n, double* vectors, double tol, double max_steps, double* outcome) {
  std::vector<std::int32_t> row(static_cast<std::size_t>(n));
  for (std::int32_t i = 0; i < n; ++i) row[i] = i;
  const i64 start[2] = {0, n};
  const auto part = [&](int k) { return vectors + k * n; };
  const Variables v{n, part(6), part(4), part(5), part(1), part(2), part(3), 1};
  const Batch one{1, n, start, row.data(), part(0), tol, i64(max_steps)};
  static_assert(sizeof(Outcome) == 8 * sizeof(double));
  batch<double>(K, one, v, reinterpret_cast<Outcome*>(outcome));
}

// Rows of L with K = L L' up to `share` of the largest diagonal value, by pivots; returns the columns of L, at most `most`.
EXPORT(factor)
std::int32_t factor(const double* K, std::int32_t n, double share, std::int32_t most, double* L) {
  return lab::factor(K, n, share, most, L);
}

// Newton steps for 1/2 |w|^2 + C sum loss(y, L w + b): f = L w + b for each point; w and b are also where it starts.
EXPORT(newton)
std::int32_t newton(const double* L, std::int32_t n, std::int32_t r, const double* y, std::int32_t loss, double C,
                    double* w, double* b, double* f, std::int32_t max_steps) {
  return lab::newton(L, n, r, y, static_cast<lab::Loss>(loss), C, w, b, f, max_steps);
}
}

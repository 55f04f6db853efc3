#include "dist/ddp/power_sgd.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/tensor/generator.h"

namespace lockstep::dist {

namespace {

/// Returns the 2-norms of the columns, [1, columns]; summed in f64, where squares of f32 values
/// neither overflow nor underflow.
Tensor lengths(const Tensor& columns) {
  return linalg_vector_norm(columns, 2, {0}, true, DType::kF64).to(columns.dtype());
}

/// A column counts as linearly dependent on those before it if projecting them out leaves less than
/// this part of its length: such a remainder is rounding.
double smallest_part(DType dtype) { return dtype == DType::kF64 ? 1e-13 : 1e-5; }

/// Makes the columns orthonormal, in order; columns in the span of those before become 0. A value
/// that is not finite makes its column NaN. Gram-Schmidt with two passes for each column, which is
/// as accurate as rounding allows (Giraud, Langou & Rozloznik 2005).
void make_orthonormal(const Tensor& matrix) {
  for (int64_t i = 0; i < matrix.size(1); ++i) {
    const Tensor column = matrix.slice(1, i, i + 1);
    const Tensor before = lengths(column);
    for (int pass = 0; pass < 2 && i > 0; ++pass) {
      const Tensor done = matrix.slice(1, 0, i);
      column.sub_(mm(done, mm(done.t(), column)));
    }
    const Tensor left = lengths(column);
    const Tensor is_nothing = le(left, before * smallest_part(matrix.dtype()));
    column.mul_(masked_fill(reciprocal(left), is_nothing, 0));
  }
}

/// Allocates matrices next to each other, so that one operation sends them all.
class Together {
 public:
  /// `elements`: of all matrices.
  Together(int64_t elements, TensorOptions options) : all_(empty({elements}, options)) {}
  /// Returns the next [rows, columns] matrix.
  Tensor next(int64_t rows, int64_t columns) {
    const int64_t first = used_;
    used_ += rows * columns;
    return all_.slice(0, first, used_).view({rows, columns});
  }
  const Tensor& all() const { return all_; }

 private:
  Tensor all_;
  int64_t used_ = 0;
};

/// State of a parameter that is kept from step to step.
struct Kept {
  Tensor error;  ///< [n, m]
  Tensor q;      ///< [m, rank], columns of length 1
  Tensor start;  ///< the first q; its columns replace those of q that become 0
};

/// A compressed gradient of the current bucket.
struct Matrix {
  Tensor values;  ///< [n, m], over the bucket
  Kept* kept = nullptr;
  Tensor p;
  Tensor q;

  int64_t rows() const { return values.size(0); }
  int64_t columns() const { return values.size(1); }
  int64_t rank() const { return kept->q.size(1); }
};

class PowerSgd {
 public:
  explicit PowerSgd(const PowerSgdOptions& options) : options_(options) {}
  Tensor sum(ProcessGroup& group, const GradientBucket& bucket);

 private:
  int64_t rank_of(const Tensor& gradient) const;
  Matrix matrix(const GradientBucket::Gradient& gradient);
  Tensor first_q(size_t parameter, const Tensor& matrix, int64_t rank) const;

  const PowerSgdOptions options_;
  int64_t step_ = 0;
  std::unordered_map<size_t, Kept> kept_;  ///< by parameter
};

/// Returns the number of columns of the gradient's factors, or 0 to send it uncompressed.
int64_t PowerSgd::rank_of(const Tensor& gradient) const {
  if (gradient.dim() < 2 || gradient.numel() == 0) return 0;
  const int64_t rows = gradient.size(0);
  const int64_t columns = gradient.numel() / rows;
  const int64_t rank = std::min({options_.rank, rows, columns});
  const auto sent = static_cast<double>((rows + columns) * rank);
  return sent * options_.min_compression <= static_cast<double>(gradient.numel()) ? rank : 0;
}

Tensor PowerSgd::first_q(size_t parameter, const Tensor& matrix, int64_t rank) const {
  Generator generator(options_.seed);
  generator.set_position(parameter, 0);
  const Tensor q = randn({matrix.size(1), rank}, matrix.options(), &generator);
  return q / lengths(q);
}

Matrix PowerSgd::matrix(const GradientBucket::Gradient& gradient) {
  const Tensor& values = gradient.values;
  LS_CHECK(values.dtype() == DType::kF32 || values.dtype() == DType::kF64, DTypeError,
           "[power_sgd] gradient of parameter {}: expected float32 or float64, got {}.",
           gradient.name, lockstep::name(values.dtype()));
  Matrix result{.values = values.view({values.size(0), values.numel() / values.size(0)}),
                .kept = &kept_[gradient.parameter],
                .p = {},
                .q = {}};
  Kept& kept = *result.kept;
  if (!kept.error.defined()) {
    kept.error = zeros_like(result.values);
    kept.start = kept.q = first_q(gradient.parameter, result.values, rank_of(values));
  }
  LS_CHECK(std::ranges::equal(kept.error.sizes(), result.values.sizes()) &&
               kept.error.dtype() == values.dtype() && kept.error.device() == values.device(),
           ShapeError,
           "[power_sgd] gradient of parameter {}: expected {} as in the steps before, got {}. Make "
           "a hook for each reducer.",
           gradient.name, to_string(kept.error), to_string(result.values));
  return result;
}

/// Computes P and Q of all matrices for the sum over ranks; P is orthonormal. Returns false on all
/// ranks if a sum is not finite.
bool sum_factors(ProcessGroup& group, std::vector<Matrix>& matrices) {
  int64_t p_elements = 0;
  int64_t q_elements = 0;
  for (const Matrix& each : matrices) {
    p_elements += each.rows() * each.rank();
    q_elements += each.columns() * each.rank();
  }
  const TensorOptions options = matrices.front().values.options();
  Together p(p_elements, options);
  Together q(q_elements, options);
  for (Matrix& each : matrices) {
    each.p = p.next(each.rows(), each.rank());
    mm_out(each.p, each.values, each.kept->q);
  }
  group.all_reduce(p.all()).wait();
  for (Matrix& each : matrices) {
    make_orthonormal(each.p);
    each.q = q.next(each.columns(), each.rank());
    mm_out(each.q, each.values.t(), each.p);
  }
  group.all_reduce(q.all()).wait();
  return is_nonzero(all(isfinite(q.all())));
}

/// Replaces the matrix by P Q^T and keeps the difference as the error.
void decompress(const Matrix& matrix, int ranks) {
  const Tensor transposed = matrix.q.t();
  Kept& kept = *matrix.kept;
  addmm_out(kept.error, matrix.values, matrix.p, transposed, 1, -1.0 / ranks);
  mm_out(matrix.values, matrix.p, transposed);
  const Tensor length = lengths(matrix.q);
  kept.q = where(gt(length, 0), matrix.q / length, kept.start);
}

Tensor PowerSgd::sum(ProcessGroup& group, const GradientBucket& bucket) {
  const bool compresses = step_ >= options_.start_step;
  if (bucket.is_last) ++step_;
  std::vector<Matrix> matrices;
  std::vector<Tensor> others;
  for (const GradientBucket::Gradient& each : bucket.gradients) {
    if (compresses && rank_of(each.values) > 0) {
      matrices.push_back(matrix(each));
    } else {
      others.push_back(each.values.flatten());
    }
  }
  const auto sum_as_it_is = [&] {
    group.all_reduce(bucket.values).wait();
    return bucket.values;
  };
  if (matrices.empty()) return sum_as_it_is();
  const Tensor rest = others.empty() ? Tensor() : cat(others);
  const Work rest_work = others.empty() ? Work() : group.all_reduce(rest);
  for (const Matrix& each : matrices) each.values.add_(each.kept->error);
  const bool is_finite = sum_factors(group, matrices);
  rest_work.wait();
  if (!is_finite) return sum_as_it_is();
  for (const Matrix& each : matrices) decompress(each, group.size());
  int64_t first = 0;
  for (const Tensor& each : others) {
    each.copy_(rest.slice(0, first, first + each.numel()));
    first += each.numel();
  }
  return bucket.values;
}

}  // namespace

CommunicationHook power_sgd_hook(const PowerSgdOptions& options) {
  LS_CHECK(options.rank >= 1, DistError, "[power_sgd] rank: expected at least 1, got {}.",
           options.rank);
  LS_CHECK(options.start_step >= 0, DistError,
           "[power_sgd] start_step: expected at least 0, got {}.", options.start_step);
  LS_CHECK(options.min_compression >= 0, DistError,
           "[power_sgd] min_compression: expected at least 0, got {}.", options.min_compression);
  auto state = std::make_shared<PowerSgd>(options);
  return {fmt::format("power_sgd rank {} start_step {} min_compression {} seed {}", options.rank,
                      options.start_step, options.min_compression, options.seed),
          [state](ProcessGroup& group, const GradientBucket& bucket) {
            return state->sum(group, bucket);
          }};
}

}  // namespace lockstep::dist

#pragma once

#include <cstdint>

#include "core/base/function_ref.h"
#include "core/tensor/kernel_arguments.h"

namespace lockstep::cpu {

// A tensor as a batch of matrices [..., rows, columns]. LAPACK takes column-major f64, so kernels
// compute each matrix in a copy. Tensors are row-major.

/// Number of matrices.
int64_t matrix_count(const TensorArg& tensor);
/// Copies a matrix into `to`, column-major. `index` counts the tensor's matrices.
void read_matrix(const In& from, int64_t index, double* to);
/// Copies the leading rows and columns of a column-major matrix with columns `rows` apart.
void write_matrix(const Out& to, int64_t index, const double* from, int64_t rows);
/// Copies a row of the last dimension from f64; `index` counts rows.
void write_row(const Out& to, int64_t index, const double* from);

/// Finds the matrix of a tensor that broadcasts to the batch of matrices of the result.
class BatchPlaces {
 public:
  /// `own` are the leading sizes of a row-major tensor, `batch` those of the result.
  BatchPlaces(IntList own, IntList batch);
  int64_t operator[](int64_t index) const;

 private:
  Dims sizes_;
  Dims strides_;
};

/// Calls body(begin, end) for ranges of matrices on several threads; each takes about `work`
/// operations.
void for_each_matrix(int64_t count, double work, FunctionRef<void(int64_t, int64_t)> body);

/// Throws Error for the first matrix for which `info` is not 0: "[op] matrix 3 of the batch
/// `what`".
void check_info(const char* op, const char* what, const Out& info);
/// Throws Error for the first matrix that has an element that is not finite.
void require_finite_matrices(const char* op, const In& matrices);

}  // namespace lockstep::cpu

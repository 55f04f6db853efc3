#include "kernels/cpu/linalg/matrices.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/tensor/shape.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr double kGrain = 16384;  // minimum operations per task

/// Names a matrix for an error: "the matrix", or "matrix 3 of the batch".
std::string name_of(int64_t index, int rank_of_batch) {
  return rank_of_batch == 0 ? "the matrix" : fmt::format("matrix {} of the batch", index);
}

}  // namespace

int64_t matrix_count(const TensorArg& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.sizes().first(static_cast<size_t>(tensor.rank - 2))) {
    count *= size;
  }
  return count;
}

void read_matrix(const In& from, int64_t index, double* to) {
  const int64_t rows = from.size(-2), columns = from.size(-1);
  with_floating_type(from.dtype, [&]<class T>() {
    const T* x = from.data<T>() + index * rows * columns;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        to[j * rows + i] = convert<double>(x[i * columns + j]);
      }
    }
  });
}

void write_matrix(const Out& to, int64_t index, const double* from, int64_t rows) {
  const int64_t height = to.size(-2), width = to.size(-1);
  with_floating_type(to.dtype, [&]<class T>() {
    T* y = to.data<T>() + index * height * width;
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) y[i * width + j] = convert<T>(from[j * rows + i]);
    }
  });
}

void write_row(const Out& to, int64_t index, const double* from) {
  const int64_t width = to.size(-1);
  with_floating_type(to.dtype, [&]<class T>() {
    T* y = to.data<T>() + index * width;
    for (int64_t j = 0; j < width; ++j) y[j] = convert<T>(from[j]);
  });
}

BatchPlaces::BatchPlaces(IntList own, IntList batch)
    : sizes_(to_dims(batch)), strides_(broadcast_strides(own, contiguous_strides(own), batch)) {}

int64_t BatchPlaces::operator[](int64_t index) const {
  int64_t place = 0;
  for (size_t i = sizes_.size(); i-- > 0 && index != 0;) {
    place += index % sizes_[i] * strides_[i];
    index /= sizes_[i];
  }
  return place;
}

void for_each_matrix(int64_t count, double work, FunctionRef<void(int64_t, int64_t)> body) {
  const double grain = std::max(1.0, kGrain / std::max(work, 1.0));
  parallel_for(0, count, static_cast<int64_t>(grain), body);
}

void check_info(const char* op, const char* what, const Out& info) {
  for (int64_t i = 0; i < info.numel; ++i) {
    const int32_t found = info.data<int32_t>()[i];
    LS_CHECK(found == 0, Error, "[{}] {} {} (its info is {}).", op, name_of(i, info.rank), what,
             found);
  }
}

void require_finite_matrices(const char* op, const In& matrices) {
  const int64_t each = matrices.size(-2) * matrices.size(-1);
  with_floating_type(matrices.dtype, [&]<class T>() {
    const T* x = matrices.data<T>();
    for (int64_t i = 0; i < matrices.numel; ++i) {
      LS_CHECK(std::isfinite(convert<double>(x[i])), Error,
               "[{}] {} has an element that is not finite: expected numbers, got {}.", op,
               name_of(i / each, matrices.rank - 2), convert<double>(x[i]));
    }
  });
}

}  // namespace lockstep::cpu

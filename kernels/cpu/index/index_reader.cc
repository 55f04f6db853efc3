#include "kernels/cpu/index/index_reader.h"

#include "core/base/check.h"

namespace lockstep::cpu {

namespace {

std::vector<int64_t> numbers_of(const In& indices) {
  std::vector<int64_t> numbers(static_cast<size_t>(indices.numel));
  const bool narrow = indices.dtype == DType::kI32;
  for (int64_t i = 0; i < indices.numel; ++i) {
    numbers[static_cast<size_t>(i)] =
        narrow ? indices.data<int32_t>()[i] : indices.data<int64_t>()[i];
  }
  return numbers;
}

}  // namespace

std::vector<int64_t> read_indices(std::string_view op, const In& indices, int64_t size) {
  std::vector<int64_t> result = numbers_of(indices);
  for (size_t i = 0; i < result.size(); ++i) {
    LS_CHECK(result[i] >= 0 && result[i] < size, IndexError,
             "[{}] index out of range: expected one in [0, {}), got {} at position {}.", op, size,
             result[i], i);
  }
  return result;
}

std::vector<int64_t> read_wrapped_indices(std::string_view op, const In& indices, int64_t size,
                                          int64_t dim) {
  std::vector<int64_t> result = numbers_of(indices);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t index = result[i];
    LS_CHECK(index >= -size && index < size, IndexError,
             "[{}] index out of range: expected one in [{}, {}) for dimension {}, got {} at "
             "position {}.",
             op, -size, size, dim, index, i);
    if (index < 0) result[i] += size;
  }
  return result;
}

}  // namespace lockstep::cpu

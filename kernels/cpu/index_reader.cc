#include "kernels/cpu/index_reader.h"

#include "core/check.h"

namespace lockstep::cpu {

std::vector<int64_t> read_indices(std::string_view op, const In& indices, int64_t size) {
  std::vector<int64_t> result(static_cast<size_t>(indices.numel));
  const bool narrow = indices.dtype == DType::kI32;
  for (int64_t i = 0; i < indices.numel; ++i) {
    const int64_t index = narrow ? indices.data<int32_t>()[i] : indices.data<int64_t>()[i];
    LS_CHECK(index >= 0 && index < size, IndexError,
             "[{}] index out of range: expected one in [0, {}), got {} at position {}.", op, size,
             index, i);
    result[static_cast<size_t>(i)] = index;
  }
  return result;
}

}  // namespace lockstep::cpu

#include "core/memory_format.h"

#include "core/check.h"

namespace lockstep {

namespace {

/// Channels innermost, then the spatial dimensions from the last, then the batch.
Dims channels_last_strides(IntList sizes) {
  Dims strides(sizes.size(), 1);
  int64_t step = sizes[1];
  for (size_t i = sizes.size() - 1; i >= 2; --i) {
    strides[i] = step;
    step *= sizes[i];
  }
  strides[0] = step;
  return strides;
}

}  // namespace

Dims strides_in_format(std::string_view op, MemoryFormat format, IntList sizes, IntList strides) {
  if (format == MemoryFormat::kPreserve) {
    return is_dense(sizes, strides) ? to_dims(strides) : contiguous_strides(sizes);
  }
  if (format == MemoryFormat::kContiguous) return contiguous_strides(sizes);
  const size_t rank = format == MemoryFormat::kChannelsLast ? 4 : 5;
  LS_CHECK(sizes.size() == rank, ShapeError,
           "[{}] this memory format needs {} dimensions, got shape {}. Use the contiguous format.",
           op, rank, to_string(sizes));
  return channels_last_strides(sizes);
}

}  // namespace lockstep

#pragma once

#include <span>
#include <string_view>

#include "core/tensor/options.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// Dense strides for `sizes` whose dimension order follows `examples`, as those of ATen's
/// element-wise results do. Each example holds strides for `sizes`. The first example that
/// distinguishes two dimensions decides which is the inner one; a stride of 0 distinguishes
/// nothing. Where none does, the order is row-major.
Dims dense_strides(IntList sizes, std::span<const IntList> examples);

/// Strides of a new tensor like one of (sizes, strides) in `format`. kPreserve keeps dense strides
/// and makes others dense in the same order; kChannelsLast takes 4 dimensions (N, C, H, W),
/// kChannelsLast3d takes 5. Throws ShapeError naming `op` for other ranks.
Dims strides_in_format(std::string_view op, MemoryFormat format, IntList sizes, IntList strides);

/// Strides with channels innermost, then the spatial dimensions from the last, then the batch; at
/// least 3 dimensions.
Dims channels_last_strides(IntList sizes);

/// Whether the strides suggest the channels-last format, by ATen's rule: there are 4 or 5
/// dimensions, and the strides grow from the channels over the spatial dimensions to the batch.
/// False if the tensor is row-major as well, as an image of one channel may be.
bool suggests_channels_last(IntList sizes, IntList strides);

/// Whether the elements lie in `format` without gaps, as ATen's `is_contiguous(memory_format)`
/// says: a dimension of size 1 may have any stride, and a channels-last format takes 4 dimensions
/// (kChannelsLast) or 5 (kChannelsLast3d), false for other ranks. kPreserve means kContiguous.
bool is_in_format(MemoryFormat format, IntList sizes, IntList strides);

}  // namespace lockstep

#pragma once

#include <span>
#include <string_view>

#include "core/tensor/options.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// Strides without gaps that run through a tensor of `sizes` in the order in which `examples` do,
/// as ATen's element-wise results have them. Each example holds strides for `sizes`; the first that
/// tells two dimensions apart decides which is the inner one, a stride of 0 tells nothing. Where
/// none does, the order is row-major.
Dims dense_strides(IntList sizes, std::span<const IntList> examples);

/// Strides of a fresh tensor like one of (sizes, strides) in `format`. kPreserve keeps strides
/// that leave no gaps and closes the gaps of others; kChannelsLast takes 4 dimensions (N, C, H, W),
/// kChannelsLast3d takes 5. Throws ShapeError naming `op` for other ranks.
Dims strides_in_format(std::string_view op, MemoryFormat format, IntList sizes, IntList strides);

/// Channels innermost, then the spatial dimensions from the last, then the batch; at least 3
/// dimensions.
Dims channels_last_strides(IntList sizes);

/// Whether strides ask for channels innermost, as ATen tells it: of 4 or 5 dimensions whose strides
/// grow from the channels over the spatial dimensions to the batch. What is row-major as well, as
/// an image of one channel may be, does not.
bool suggests_channels_last(IntList sizes, IntList strides);

}  // namespace lockstep

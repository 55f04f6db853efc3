#pragma once

#include "core/base/spans/span_recorder.h"

namespace lockstep::cuda {

/// Shows spans as NVTX ranges, for Nsight Systems: where a program does not run under it, a call
/// costs a few ns. Null in a build without NVTX's headers.
const SpanMirror* nvtx_mirror();

}  // namespace lockstep::cuda

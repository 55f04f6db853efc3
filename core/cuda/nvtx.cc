#include "core/cuda/nvtx.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace lockstep::cuda {

const SpanMirror* nvtx_mirror() {
  static constexpr SpanMirror kMirror = {
      .begin = [](const char* name) noexcept { (void)nvtxRangePushA(name); },
      .end = []() noexcept { (void)nvtxRangePop(); }};
  return &kMirror;
}

}  // namespace lockstep::cuda

#else

namespace lockstep::cuda {

const SpanMirror* nvtx_mirror() { return nullptr; }

}  // namespace lockstep::cuda

#endif

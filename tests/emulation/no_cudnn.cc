#include "tests/emulation/no_cudnn.h"

#include "core/cuda/cudnn.h"

namespace lockstep::cuda {

void install_no_cudnn() {
#ifdef LS_HAS_CUDNN
  static auto* const none = new CudnnLibrary([] {
    LoadedCudnn loaded;
    loaded.reason = "the emulated GPU has none";
    return loaded;
  });
  set_cudnn(*none);
#endif
}

}  // namespace lockstep::cuda

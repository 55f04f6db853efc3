// Loads the plug-in and runs its operator on the cpu and, where there is one, on a GPU.

#include <lockstep/lockstep.h>

#include <cstdio>

#include "core/cuda/availability.h"

using namespace lockstep;

int main() {
  try {
    const Plugin plugin = load_library(CUSTOM_CUDA_OP);

    manual_seed(1);
    const Tensor x = randn({1000, 30});
    const Tensor expected = call_op("my::rms_normalize", {x});
    std::printf("cpu: mean square %.6f\n", (expected * expected).mean().item<float>());

    const cuda::Availability gpus = cuda::availability();
    if (gpus.devices.empty()) {
      std::printf("no GPU: %s\n", gpus.reason.c_str());
      return 0;
    }
    const Tensor on_gpu = call_op("my::rms_normalize", {x.to(Device{DeviceType::kCUDA, 0})});
    const Tensor difference = on_gpu.to(kCPU) - expected;
    const auto worst = max(abs(difference)).item<float>();
    std::printf("%s: differs by at most %.2g\n", gpus.devices[0].c_str(), worst);
    return worst < 1e-5f ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.kind(), error.what());
    return 1;
  }
}

// Which parameters of a unit are gathered in another dtype.

#include <gtest/gtest.h>

#include <vector>

#include "autograd/autocast.h"
#include "dist/fsdp/fully_shard.h"
#include "tests/dist/fsdp/small_net.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

/// y = (x W^T + b) * s, with the vectors on either side of the matrix.
struct ScaledLayer : HookedModule {
  ScaledLayer()
      : HookedModule(""),
        scale(add_parameter("scale", random_tensor({SmallNet::kWidth}, 1))),
        weight(add_parameter("weight", random_tensor({SmallNet::kWidth, SmallNet::kWidth}, 2))),
        bias(add_parameter("bias", random_tensor({SmallNet::kWidth}, 3))) {}
  Tensor forward(const Tensor& x) const {
    return run_forward([this](const Tensor& input) { return linear(input, weight, bias) * scale; },
                       x);
  }

  Tensor scale, weight, bias;
};

TEST(GatheredCasts, VectorsAreGatheredAsTheyAre) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not see what oneDNN's cache of bf16 products locks";
#endif
  all_ranks(2, [](ProcessGroup& group) {
    const AutocastGuard region(DeviceType::kCPU);
    std::vector<std::vector<float>> gradients;
    for (const bool casts : {false, true}) {
      ScaledLayer layer;
      ShardOptions options;
      if (casts) options.gather_dtype = DType::kBF16;
      const auto sharded = fully_shard(layer, std::vector<HookedModule*>{}, group, options);
      sharded->begin_step();
      sharded->begin_leaf();
      sum(layer.forward(random_tensor({2, SmallNet::kWidth}, 4))).backward();
      sharded->finish();
      for (const Tensor& each : sharded->gradients()) gradients.push_back(values_of(each));
    }
    const size_t half = gradients.size() / 2;
    for (size_t i = 0; i < half; ++i) EXPECT_EQ(gradients[i], gradients[half + i]);
  });
}

}  // namespace
}  // namespace lockstep::dist

#include "core/ops/factory/dlpack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "core/base/environment_flag.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/pinned.h"
#include "tests/cuda/gpu.h"

namespace lockstep {
namespace {

TEST(CudaDlpack, RoundTripsShareTheMemory) {
  const Tensor x = full({2, 3}, 5.0, kGpu);
  dlpack::Managed managed = to_dlpack(x);
  EXPECT_EQ(managed->dl_tensor.device, (dlpack::DLDevice{dlpack::kDLCUDA, 0}));
  const Tensor back = from_dlpack(managed.release());
  EXPECT_EQ(back.device(), kGpu);
  EXPECT_EQ(back.data(), x.data());
  EXPECT_EQ(floats_of(back.add(back)), std::vector<float>(6, 10));
}

TEST(CudaDlpack, ForTheCpuACopyIsMade) {
  const Tensor x = full({2}, 5.0, kGpu);
  const dlpack::Managed managed = to_dlpack(x, {.device = kCPU});
  EXPECT_EQ(managed->dl_tensor.device.device_type, dlpack::kDLCPU);
  EXPECT_EQ(managed->flags, dlpack::kFlagIsCopied);
  EXPECT_EQ(static_cast<const float*>(managed->dl_tensor.data)[1], 5);
}

TEST(CudaDlpack, TheConsumersStreamWaitsForTheProducers) {
  if (environment_flag("CUDA_LAUNCH_BLOCKING")) GTEST_SKIP() << "callbacks are waited for";
  const Stream producer = get_stream_from_pool(kGpu);
  const OwnedStream consumer(kGpu);
  const StreamGuard guard(producer);
  std::atomic<bool> open = false;
  const Tensor x = full({2}, 5.0, kGpu);
  producer.add_callback([&] { open.wait(false); });
  (void)to_dlpack(x);
  EXPECT_TRUE(consumer.get().query());
  (void)to_dlpack(x, {.consumer = consumer.get()});
  EXPECT_FALSE(consumer.get().query());
  open = true;
  open.notify_all();
  consumer.get().synchronize();
}

TEST(CudaDlpack, PinnedMemoryIsNamedSoUnlessTheCpuIsAskedFor) {
  const Tensor x = empty_pinned({2}, DType::kF32, kGpu);
  EXPECT_EQ(dlpack_device(x), (dlpack::DLDevice{dlpack::kDLCUDAHost, 0}));
  EXPECT_EQ(to_dlpack(x)->dl_tensor.device.device_type, dlpack::kDLCUDAHost);
  const dlpack::Managed plain = to_dlpack(x, {.device = kCPU});
  EXPECT_EQ(plain->dl_tensor.device.device_type, dlpack::kDLCPU);
  EXPECT_EQ(plain->dl_tensor.data, x.data());
}

}  // namespace
}  // namespace lockstep

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/device/copies.h"
#include "core/device/waits.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> integers(const Tensor& tensor) {
  const Tensor here = tensor.to(DType::kI64).to(kCPU).contiguous();
  return {here.data<int64_t>(), here.data<int64_t>() + here.numel()};
}

Tensor on_host(std::initializer_list<float> numbers) {
  const Tensor tensor = empty({static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), tensor.data<float>());
  return tensor.to(kHost0);
}

TEST(HostFallback, ServesWhatNoStreamCanRunAndNothingElse) {
  for (const Operator* op : dispatcher().operators()) {
    const bool falls_back = op->explain(Key::kHost) == "fallback of the key";
    const bool cannot_run =
        op->kind() == OpKind::kDynamic || op->kind() == OpKind::kHostValue ||
        (op->kind() == OpKind::kStructured && op->explain(Key::kCPU) == "missing");
    EXPECT_EQ(falls_back, cannot_run) << op->name() << ": " << op->explain(Key::kHost);
  }
}

TEST(HostFallback, WaitsForTheStreamAndCountsIt) {
  const OwnedStream stream(kHost0);
  const StreamGuard guard(stream.get());
  const Tensor x = on_host({3, 0, 5});
  x.add_(x);
  const int64_t waits = hidden_waits();
  EXPECT_EQ(x.select(0, 2).item<float>(), 10);
  EXPECT_EQ(hidden_waits(), waits + 1);
  EXPECT_TRUE(stream.get().query());
}

TEST(HostFallback, ResultsAreOnTheDevice) {
  const Tensor x = on_host({3, 0, 5});
  const Tensor places = nonzero(x);
  EXPECT_EQ(places.device(), kHost0);
  EXPECT_THAT(places.sizes(), ElementsAre(2, 1));
  EXPECT_THAT(integers(places), ElementsAre(0, 2));
  const Tensor chosen = masked_select(x, gt(x, 1));
  EXPECT_EQ(chosen.device(), kHost0);
  EXPECT_THAT(integers(chosen), ElementsAre(3, 5));
  EXPECT_THAT(integers(bincount(x.to(DType::kI64))), ElementsAre(1, 0, 0, 1, 0, 1));
  EXPECT_THAT(integers(nonzero(zeros({3}, {DType::kF32, kHost0}))), ElementsAre());
}

TEST(HostFallback, ReadsTheDevicesMemoryInPlace) {
  const Tensor x = on_host({1, 2, 3, 4, 5, 6}).view({2, 3}).t();
  const int64_t copies = hidden_copies().copies;
  EXPECT_TRUE(equal(x, x.clone()));
  EXPECT_FALSE(equal(x, x.add(x)));
  EXPECT_EQ(x.select(0, 2).select(0, 1).item<float>(), 6);
  EXPECT_EQ(hidden_copies().copies, copies);
}

TEST(HostFallback, TensorsOfTwoDevicesAreRefused) {
  const Tensor x = on_host({1, 2});
  expect_error<DeviceError>([&] { (void)equal(x, x.to(kHost1)); }, "equal", "host:0", "host:1");
  expect_error<DeviceError>([&] { (void)equal(x, x.to(kCPU)); }, "different devices");
}

TEST(HostFallback, ErrorsAreTheCpus) {
  const Tensor x = on_host({1, 2});
  expect_error<ShapeError>([&] { (void)x.item<float>(); }, "[item]", "got 2");
  x.add_(x);
  EXPECT_THAT(integers(x), ElementsAre(2, 4));
}

}  // namespace
}  // namespace lockstep

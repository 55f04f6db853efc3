// The stream sanitizer over real tensors on the host device, with the events that the runtime, the
// allocator and the copies report to it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/device/stream_sanitizer.h"
#include "core/memory/caching_allocator.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "core/tensor/event.h"
#include "core/tensor/tensor.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

class SanitizedTensors : public testing::Test {
 protected:
  void SetUp() override {
    synchronize(kHost0);
    was_on_ = stream_sanitizer::enabled();
    stream_sanitizer::enable(true);
  }
  void TearDown() override {
    synchronize(kHost0);
    stream_sanitizer::enable(was_on_);
  }

  /// A tensor of ones on the device, filled on the current stream.
  static Tensor ones_there(int64_t count) {
    const Tensor tensor = empty_tensor({count}, DType::kF32, kHost0);
    tensor.fill_(1);
    return tensor;
  }

  /// Allocates tensors of `count` floats until one is at `address`, which is free or about to be.
  /// Keeps the others alive.
  Tensor again_at(const void* address, int64_t count) {
    for (int i = 0; i < 1000; ++i) {
      others_.push_back(empty_tensor({count}, DType::kF32, kHost0));
      if (others_.back().data() == address) return others_.back();
    }
    ADD_FAILURE() << "the address never came back";
    return {};
  }

  OwnedStream first_{kHost0};
  OwnedStream second_{kHost0};
  const Stream& a_ = first_.get();
  const Stream& b_ = second_.get();

 private:
  bool was_on_ = false;
  std::vector<Tensor> others_;
};

TEST_F(SanitizedTensors, AMissingEventIsReportedBeforeTheKernelRuns) {
  const StreamGuard on_a(a_);
  const Tensor x = ones_there(1000);
  const StreamGuard on_b(b_);
  expect_error<DeviceError>([&] { (void)exp(x); }, "[exp] on " + to_string(b_) + " reads",
                            "`fill_.Scalar` on " + to_string(a_), "4000 bytes",
                            "record one on " + to_string(a_) + " after `fill_.Scalar` and let " +
                                to_string(b_) + " wait");
  b_.wait_stream(a_);
  EXPECT_NO_THROW((void)exp(x));
  x.record_stream(b_);
  EXPECT_EQ(stream_sanitizer::reports(), 1);
}

TEST_F(SanitizedTensors, AnEventOrdersTheUseOfAnotherStream) {
  Tensor x, y;
  Event made;
  {
    const StreamGuard on_a(a_);
    x = ones_there(100);
    made.record(a_);
    x.fill_(2);
  }
  const StreamGuard on_b(b_);
  b_.wait_event(made);
  EXPECT_THROW((void)exp(x), DeviceError) << "the event is older than the second fill_";
  made.record(a_);
  b_.wait_event(made);
  EXPECT_NO_THROW(y = exp(x));
  x.record_stream(b_);
}

TEST_F(SanitizedTensors, MemoryOfAStreamThatIsGoneServesTheNextInOrder) {
  const void* address = nullptr;
  {
    const OwnedStream gone(kHost0);
    const StreamGuard on_gone(gone.get());
    address = exp(ones_there(1000)).data();
  }
  const OwnedStream next(kHost0);
  const StreamGuard on_next(next.get());
  EXPECT_NO_THROW(again_at(address, 1000).fill_(2));
}

TEST_F(SanitizedTensors, AMissingRecordStreamIsReportedWhenTheBlockIsUsedAgain) {
  for (const bool recorded : {false, true}) {
    SCOPED_TRACE(recorded);
    stream_sanitizer::enable(true);
    const StreamGuard on_a(a_);
    Tensor x = ones_there(1 << 16);
    const void* const address = x.data();
    {
      const StreamGuard on_b(b_);
      b_.wait_stream(a_);
      const Tensor y = exp(x);
      if (recorded) x.record_stream(b_);
    }
    x = {};
    const Tensor next = again_at(address, 1 << 16);
    if (recorded) {
      EXPECT_NO_THROW(next.fill_(2));
    } else {
      expect_error<DeviceError>(
          [&] { next.fill_(2); }, "[fill_.Scalar] on " + to_string(a_), "`exp` on " + to_string(b_),
          "The block was freed while " + to_string(b_) + " used it: call record_stream");
    }
    synchronize(kHost0);
  }
}

TEST_F(SanitizedTensors, RecordUseOrdersWhatWasQueuedUntilThen) {
  const StreamGuard on_a(a_);
  Tensor x = ones_there(1 << 16);
  const void* const address = x.data();
  {
    const StreamGuard on_b(b_);
    b_.wait_stream(a_);
    const Tensor y = exp(x);
    x.record_use(b_);
  }
  x = {};
  const Tensor next = again_at(address, 1 << 16);
  EXPECT_NO_THROW(next.fill_(2));
}

TEST_F(SanitizedTensors, PolledReuseIsOrderedByTheEventsThatWereSeenDone) {
  CachingAllocator& allocator = caching_allocator(kHost0);
  const AllocatorOptions before = allocator.options();
  AllocatorOptions options = before;
  options.stream_reuse = StreamReuse::kPoll;
  allocator.set_options(options);
  {
    const StreamGuard on_a(a_);
    Tensor x = ones_there(1 << 16);
    b_.wait_stream(a_);
    {
      const StreamGuard on_b(b_);
      (void)exp(x);
      x.record_stream(b_);
    }
    x = {};
    for (int i = 0; i < 20; ++i) {
      const Tensor next = empty_tensor({1 << 16}, DType::kF32, kHost0);
      EXPECT_NO_THROW(next.fill_(2));
    }
  }
  allocator.set_options(before);
}

TEST_F(SanitizedTensors, HostWaitsOrderWhatIsQueuedLater) {
  Tensor x;
  {
    const StreamGuard on_a(a_);
    x = ones_there(100);
  }
  a_.synchronize();
  const StreamGuard on_b(b_);
  EXPECT_NO_THROW(x.fill_(2));
  b_.synchronize();
  EXPECT_EQ(x.to(kCPU).data<float>()[7], 2);
}

TEST_F(SanitizedTensors, ColumnsOfOneMatrixMayBelongToTwoStreams) {
  Tensor matrix;
  {
    const StreamGuard on_a(a_);
    matrix = empty_tensor({16, 8}, DType::kF32, kHost0);
    matrix.fill_(0);
  }
  b_.wait_stream(a_);
  const Tensor left = matrix.slice(1, 0, 4);
  const Tensor right = matrix.slice(1, 4, 8);
  {
    const StreamGuard on_a(a_);
    left.fill_(1);
  }
  {
    const StreamGuard on_b(b_);
    EXPECT_NO_THROW(right.fill_(2));
    EXPECT_THROW(left.fill_(2), DeviceError);
  }
  matrix.record_stream(b_);
}

TEST_F(SanitizedTensors, CopiesAreUsesToo) {
  const StreamGuard on_a(a_);
  const Tensor x = ones_there(64);
  const Tensor here = empty_tensor({64}, DType::kF32);
  const StreamGuard on_b(b_);
  expect_error<DeviceError>([&] { (void)x.to(kCPU); }, "[copy] on " + to_string(b_),
                            "`fill_.Scalar` on " + to_string(a_));
}

TEST_F(SanitizedTensors, ACorrectPipelineOverTwoStreamsGivesNoReport) {
  const StreamGuard on_a(a_);
  const Tensor weight = ones_there(64 * 64).view({64, 64});
  Tensor sum = ones_there(64 * 64).view({64, 64});
  for (int step = 0; step < 50; ++step) {
    Tensor next;
    {
      const StreamGuard on_b(b_);
      next = ones_there(64 * 64).view({64, 64});
      for (int i = 0; i < 3; ++i) next = next + 1;
    }
    a_.wait_stream(b_);
    next.record_stream(a_);
    const Tensor product = mm(next, weight);
    sum = sum + product;
  }
  a_.synchronize();
  EXPECT_EQ(stream_sanitizer::reports(), 0);
  EXPECT_FLOAT_EQ(sum.to(kCPU).data<float>()[0], 1 + 50 * 64 * 4);
}

}  // namespace
}  // namespace lockstep

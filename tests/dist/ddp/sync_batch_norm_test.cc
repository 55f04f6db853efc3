#include "dist/ddp/sync_batch_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/norm/batch_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/tensor/stream.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::dist {
namespace {

constexpr double kMomentum = 0.3;
constexpr double kEps = 1e-3;

/// A whole batch, the parameters, and the gradient of the output.
struct Batch {
  Tensor x, weight, bias, seeds;

  Batch(const Dims& shape, DType dtype, double offset = 0) {
    const DType parameters = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    x = (random_tensor(shape, DType::kF64, 1) * 2.0 + offset).to(dtype);
    weight = random_tensor({shape[1]}, parameters, 2);
    bias = random_tensor({shape[1]}, parameters, 3);
    seeds = random_tensor(shape, dtype, 4);
  }
};

/// Outputs, gradients and updated running statistics of a batch norm in training.
struct Found {
  Tensor out, dx, dweight, dbias, mean, var;
};

/// Trains on rows [first, end), with statistics over `group`, or, if null, over these rows alone.
Found train(const Batch& batch, int64_t first, int64_t end, ProcessGroup* group,
            bool affine = true) {
  const auto rows = [&](const Tensor& of) { return clone(of.slice(0, first, end)); };
  const Tensor x = rows(batch.x).set_requires_grad();
  const DType dtype = batch.weight.dtype();
  Found found;
  found.mean = full(batch.bias.sizes(), 0.5, dtype);
  found.var = full(batch.bias.sizes(), 2.0, dtype);
  const Tensor weight = affine ? clone(batch.weight).set_requires_grad() : Tensor();
  const Tensor bias = affine ? clone(batch.bias).set_requires_grad() : Tensor();
  const Tensor out =
      group == nullptr
          ? batch_norm(x, weight, bias, found.mean, found.var, true, kMomentum, kEps)
          : sync_batch_norm(x, weight, bias, found.mean, found.var, true, kMomentum, kEps, group);
  backward({out}, {rows(batch.seeds)});
  found.out = out.detach();
  found.dx = x.grad();
  if (affine) found.dweight = weight.grad(), found.dbias = bias.grad();
  return found;
}

/// Trains one rank per entry of `rows`, with that many rows. Sums the gradients of the parameters
/// and concatenates the rest.
Found train_on_ranks(const Batch& batch, const std::vector<int64_t>& rows, bool affine = true) {
  std::vector<Found> parts(rows.size());
  all_ranks(static_cast<int>(rows.size()), [&](ProcessGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    int64_t first = 0;
    for (size_t i = 0; i < rank; ++i) first += rows[i];
    parts[rank] = train(batch, first, first + rows[rank], &group, affine);
  });
  if (testing::Test::HasFailure()) return {};
  std::vector<Tensor> out, dx;
  Found whole = parts[0];
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    const Found& part = parts[rank];
    out.push_back(part.out);
    dx.push_back(part.dx);
    lockstep::expect_near(part.mean, whole.mean, 0, 0);
    lockstep::expect_near(part.var, whole.var, 0, 0);
    if (rank == 0 || !affine) continue;
    whole.dweight = whole.dweight + part.dweight;
    whole.dbias = whole.dbias + part.dbias;
  }
  whole.out = cat(out);
  whole.dx = cat(dx);
  return whole;
}

void expect_near(const Found& got, const Found& wanted, double tolerance, double of_gradients) {
  lockstep::expect_near(got.out, wanted.out, tolerance, tolerance);
  lockstep::expect_near(got.dx, wanted.dx, of_gradients, of_gradients);
  lockstep::expect_near(got.mean, wanted.mean, tolerance, tolerance);
  lockstep::expect_near(got.var, wanted.var, tolerance, tolerance);
  if (!wanted.dweight.defined()) return;
  lockstep::expect_near(got.dweight, wanted.dweight, of_gradients, of_gradients);
  lockstep::expect_near(got.dbias, wanted.dbias, of_gradients, of_gradients);
}

TEST(SyncBatchNorm, IsThatOfOneRankWithAllSamples) {
  for (const Dims& shape : {Dims{12, 5}, Dims{12, 4, 3}, Dims{12, 5, 4, 6}}) {
    const Batch batch(shape, DType::kF64);
    const Found one = train(batch, 0, 12, nullptr);
    // Includes parts of one row and of none.
    for (const std::vector<int64_t>& rows :
         std::vector<std::vector<int64_t>>{{6, 6}, {1, 11}, {0, 12}, {4, 4, 4}, {5, 0, 7}}) {
      SCOPED_TRACE(to_string(shape) + " in " + to_string(IntList(rows)));
      expect_near(train_on_ranks(batch, rows), one, 1e-13, 1e-12);
    }
  }
}

TEST(SyncBatchNorm, RoundsAsF32AndBf16Do) {
  const Dims shape{12, 5, 3, 3};
  for (const std::vector<int64_t>& rows : std::vector<std::vector<int64_t>>{{5, 7}, {3, 8, 1}}) {
    const Batch single(shape, DType::kF32);
    expect_near(train_on_ranks(single, rows), train(single, 0, 12, nullptr), 1e-6, 1e-5);
    const Batch half(shape, DType::kBF16);
    const Found got = train_on_ranks(half, rows);
    EXPECT_EQ(got.out.dtype(), DType::kBF16);
    EXPECT_EQ(got.dx.dtype(), DType::kBF16);
    EXPECT_EQ(got.dweight.dtype(), DType::kF32);
    const Found one = train(half, 0, 12, nullptr);
    lockstep::expect_near(got.out, one.out, 1e-5, 1.0 / 128);
    lockstep::expect_near(got.dx, one.dx, 1e-5, 1.0 / 128);
    lockstep::expect_near(got.dweight, one.dweight, 1e-5, 1e-5);
    lockstep::expect_near(got.var, one.var, 1e-6, 1e-6);
  }
}

TEST(SyncBatchNorm, AMeanFarFromZeroCostsNoDigits) {
  // In f32, E[x^2] - E[x]^2 would lose the variance of these numbers entirely.
  const Batch batch({12, 3, 8}, DType::kF32, 1e5);
  const Found one = train(batch, 0, 12, nullptr);
  EXPECT_NEAR(values(one.var)[0], 0.7 * 2 + 0.3 * 4, 1);
  const Found got = train_on_ranks(batch, {2, 10});
  lockstep::expect_near(got.out, one.out, 1e-6, 1e-6);
  lockstep::expect_near(got.var, one.var, 1e-6, 1e-6);
  lockstep::expect_near(got.dx, one.dx, 1e-5, 1e-5);
}

TEST(SyncBatchNorm, NeedsNoWeight) {
  const Batch batch({9, 4, 2}, DType::kF64);
  expect_near(train_on_ranks(batch, {4, 5}, false), train(batch, 0, 9, nullptr, false), 1e-13,
              1e-12);
}

TEST(SyncBatchNorm, KeepsTheFormatThatBatchNormKeeps) {
  const Dims shape{8, 5, 4, 6};
  Batch batch(shape, DType::kF64);
  const Found plain = train(batch, 0, 8, nullptr);
  batch.x = contiguous(batch.x, MemoryFormat::kChannelsLast);
  const Found one = train(batch, 0, 8, nullptr);
  std::vector<Found> parts(2);
  all_ranks(2, [&](ProcessGroup& group) {
    const int64_t first = group.rank() == 0 ? 0 : 3;
    parts[static_cast<size_t>(group.rank())] =
        train(batch, first, group.rank() == 0 ? 3 : 8, &group);
  });
  EXPECT_EQ(to_string(parts[1].out.strides()),
            to_string(train(batch, 3, 8, nullptr).out.strides()));
  lockstep::expect_near(cat({parts[0].out, parts[1].out}), plain.out, 1e-13, 1e-13);
  lockstep::expect_near(cat({parts[0].dx, parts[1].dx}), one.dx, 1e-12, 1e-12);
}

TEST(SyncBatchNorm, TooFewSamplesAreWhatTheyAreToOneRank) {
  // One element: a biased variance of 0, and an unbiased one of 0 / 0.
  const Batch one({1, 3}, DType::kF64);
  expect_near(train_on_ranks(one, {0, 1}), train(one, 0, 1, nullptr), 1e-13, 1e-12);
  const Batch none({0, 3}, DType::kF64);
  expect_near(train_on_ranks(none, {0, 0}), train(none, 0, 0, nullptr), 0, 0);
}

TEST(SyncBatchNorm, RunsWhereStreamsDo) {
  const Batch batch({7, 4, 3}, DType::kF32);
  const Found cpu = train_on_ranks(batch, {3, 4});
  const Device host = parse_device("host:0");
  std::vector<std::vector<double>> out(2), dx(2);
  all_ranks(2, [&](ProcessGroup& group) {
    const StreamGuard own_stream(get_stream_from_pool(host));
    Batch there = batch;
    for (Tensor* each : {&there.x, &there.weight, &there.bias, &there.seeds}) {
      *each = each->to(host);
    }
    const DefaultDeviceGuard on_device(host);
    const int64_t first = group.rank() == 0 ? 0 : 3;
    const Found found = train(there, first, group.rank() == 0 ? 3 : 7, &group);
    out[static_cast<size_t>(group.rank())] = values(found.out.to(kCPU));
    dx[static_cast<size_t>(group.rank())] = values(found.dx.to(kCPU));
  });
  EXPECT_EQ(out[0], values(cpu.out.slice(0, 0, 3)));
  EXPECT_EQ(out[1], values(cpu.out.slice(0, 3, 7)));
  EXPECT_EQ(dx[1], values(cpu.dx.slice(0, 3, 7)));
}

TEST(SyncBatchNorm, UnderAutocastComputesInF32) {
  const Batch batch({8, 3, 4}, DType::kBF16);
  const auto cast = [&](int64_t first, int64_t end, ProcessGroup* group) {
    const Tensor x = clone(batch.x.slice(0, first, end)).set_requires_grad();
    const AutocastGuard region(DeviceType::kCPU);
    const Tensor out =
        sync_batch_norm(x, batch.weight, batch.bias, {}, {}, true, kMomentum, kEps, group);
    EXPECT_EQ(out.dtype(), DType::kF32);
    backward({out}, {ones_like(out)});
    EXPECT_EQ(x.grad().dtype(), DType::kBF16);
    return out.detach();
  };
  const Tensor one = cast(0, 8, nullptr);
  all_ranks(2, [&](ProcessGroup& group) {
    const int64_t first = group.rank() * 4;
    lockstep::expect_near(cast(first, first + 4, &group), one.slice(0, first, first + 4), 1e-6,
                          1e-6);
  });
}

TEST(SyncBatchNorm, WithoutTrainingOrOthersIsBatchNorm) {
  const Batch batch({6, 3}, DType::kF32);
  const Tensor mean = full({3}, 0.25), var = full({3}, 1.5);
  const Tensor wanted = batch_norm(batch.x, batch.weight, batch.bias, mean, var, false, 0.1, kEps);
  all_ranks(2, [&](ProcessGroup& group) {
    if (group.rank() != 0) return;  // no communication, so no rank waits
    const Tensor got =
        sync_batch_norm(batch.x, batch.weight, batch.bias, mean, var, false, 0.1, kEps, &group);
    EXPECT_EQ(values(got), values(wanted));
  });
  const Tensor alone = batch_norm(batch.x, {}, {}, {}, {}, true, 0.1, kEps);
  EXPECT_EQ(values(sync_batch_norm(batch.x, {}, {}, {}, {}, true, 0.1, kEps, nullptr)),
            values(alone));
  all_ranks(1, [&](ProcessGroup& group) {
    EXPECT_EQ(values(sync_batch_norm(batch.x, {}, {}, {}, {}, true, 0.1, kEps, &group)),
              values(alone));
  });
}

TEST(SyncBatchNorm, ASecondDerivativeIsRefused) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor x = random_tensor({4, 3}, DType::kF64).set_requires_grad();
    const Tensor out = sync_batch_norm(x, {}, {}, {}, {}, true, 0.1, kEps, &group);
    const Tensor first = grad({sum(square(out))}, {x}, {}, {.create_graph = true})[0];
    expect_error<AutogradError>([&] { grad({sum(square(first))}, {x}); }, "SyncBatchNorm");
  });
}

/// Errors of `body` on both ranks, as text. No rank may hang, nor abort its group by itself.
template <class Body>
std::vector<std::string> errors_of(Body body) {
  std::vector<std::string> texts(2);
  all_ranks(2, [&](ProcessGroup& group) {
    try {
      body(group);
    } catch (const Error& error) {
      texts[static_cast<size_t>(group.rank())] = std::string(error.kind()) + ": " + error.what();
    }
  });
  return texts;
}

using testing::HasSubstr;
using testing::StartsWith;

TEST(SyncBatchNorm, WhatOneRankThrowsReachesTheOthers) {
  const auto in_forward = errors_of([](ProcessGroup& group) {
    const Tensor weight = ones({group.rank() == 1 ? 4 : 3});
    sync_batch_norm(random_tensor({2, 3}), weight, {}, {}, {}, true, 0.1, kEps, &group);
  });
  EXPECT_THAT(in_forward[1],
              StartsWith("ShapeError: [sync_batch_norm] expected a weight for each"));
  EXPECT_THAT(in_forward[0], StartsWith("PeerLostError"));
  EXPECT_THAT(in_forward[0], HasSubstr("sync_batch_norm failed on this rank"));

  const auto in_backward = errors_of([](ProcessGroup& group) {
    const Tensor x = random_tensor({2, 3}).set_requires_grad();
    const Tensor input = x * 2.0;
    const Tensor out = sync_batch_norm(input, {}, {}, {}, {}, true, 0.1, kEps, &group);
    if (group.rank() == 1) input.detach().fill_(0);
    backward({sum(out)});
  });
  EXPECT_THAT(in_backward[1], StartsWith("AutogradError"));
  EXPECT_THAT(in_backward[0], StartsWith("PeerLostError"));
}

TEST(SyncBatchNorm, OtherChannelsOnAnotherRankAreAMismatch) {
  for (const std::string& text : errors_of([](ProcessGroup& group) {
         const Tensor x = random_tensor({2, 3 + group.rank()});
         sync_batch_norm(x, {}, {}, {}, {}, true, 0.1, kEps, &group);
       })) {
    EXPECT_THAT(text, StartsWith("MismatchError"));
  }
}

}  // namespace
}  // namespace lockstep::dist

#include "dist/local/local_sgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/dist/ddp/known_gradients.h"
#include "tests/dist/group/communicator_ranks.h"
#include "tests/dist/group/labelled_operations.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using Bits = std::string;

const std::vector<std::vector<int64_t>> kShapes = {{30, 20}, {7}, {300}, {64, 9}};

Bits bits_of_tensors(const std::vector<Tensor>& tensors) {
  Bits bits;
  for (const Tensor& each : tensors) {
    const Tensor here = each.to(kCPU).contiguous();
    bits.append(static_cast<const char*>(here.data()), here.nbytes());
  }
  return bits;
}

std::vector<Tensor> globals_of(const LocalSgd& local) {
  std::vector<Tensor> globals;
  for (size_t i = 0; i < local.parameters().size(); ++i) globals.push_back(local.global(i));
  return globals;
}

std::vector<Tensor> tensors_of(const std::vector<NamedTensor>& parameters) {
  std::vector<Tensor> tensors;
  for (const NamedTensor& each : parameters) tensors.push_back(each.tensor.detach());
  return tensors;
}

/// A rank's own step: each parameter changes by random values.
void own_step(const std::vector<NamedTensor>& parameters, int rank, int64_t step) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor parameter = parameters[i].tensor.detach();
    const auto seed = static_cast<uint32_t>(1000 * step + 100 * rank + static_cast<int64_t>(i));
    const std::vector<int64_t> shape(parameter.sizes().begin(), parameter.sizes().end());
    parameter.add_(random_values(seed, shape).to(parameter.device()), 0.01);
  }
}

struct Ran {
  Bits parameters;
  Bits globals;
};

/// Parameters and global values of each rank after `steps` steps of its own.
std::vector<Ran> ran(const LocalSgdOptions& options, int ranks, int64_t steps,
                     bool finishes = false, Device device = kCPU) {
  std::vector<Ran> found(static_cast<size_t>(ranks));
  all_ranks(ranks, [&](ProcessGroup& group) {
    const OwnCurrentStream own(device);
    const auto parameters = parameters_of(kShapes, {DType::kF32, device});
    LocalSgd local(parameters, group, options);
    for (int64_t step = 1; step <= steps; ++step) {
      own_step(parameters, group.rank(), step);
      local.after_update(step);
    }
    if (finishes) local.finish(steps);
    found[static_cast<size_t>(group.rank())] = {bits_of_tensors(tensors_of(parameters)),
                                                bits_of_tensors(globals_of(local))};
  });
  return found;
}

/// The outer step by its formula, in f64: the first parameter's global values after each average.
std::vector<std::vector<double>> by_formula(const LocalSgdOptions& options, int ranks,
                                            int averages) {
  const auto count = static_cast<size_t>(kShapes[0][0] * kShapes[0][1]);
  std::vector<double> global(count, 1), momentum(count, 0);
  std::vector<std::vector<double>> found;
  for (int average = 0; average < averages; ++average) {
    std::vector<double> mean(count, 0);
    for (int rank = 0; rank < ranks; ++rank) {
      for (int64_t inner = 1; inner <= options.inner_steps; ++inner) {
        const int64_t step = average * options.inner_steps + inner;
        const Tensor change =
            random_values(static_cast<uint32_t>(1000 * step + 100 * rank), kShapes[0]);
        for (size_t i = 0; i < count; ++i) {
          mean[i] += 0.01 * static_cast<double>(change.data<float>()[i]) / ranks;
        }
      }
    }
    for (size_t i = 0; i < count; ++i) {
      momentum[i] = options.momentum * momentum[i] + mean[i];
      global[i] += options.learning_rate * (mean[i] + options.momentum * momentum[i]);
    }
    found.push_back(global);
  }
  return found;
}

TEST(LocalSgd, AveragesAreUsedAsTheFormulaSays) {
  for (const int ranks : {1, 2, 3}) {
    const LocalSgdOptions options{
        .inner_steps = 4, .bits = 32, .learning_rate = 0.7, .momentum = 0.9};
    const auto expected = by_formula(options, ranks, 3);
    all_ranks(ranks, [&](ProcessGroup& group) {
      const auto parameters = parameters_of(kShapes);
      LocalSgd local(parameters, group, options);
      for (int64_t step = 1; step <= 12; ++step) {
        own_step(parameters, group.rank(), step);
        local.after_update(step);
        if (step % 4 != 0) continue;
        const auto& global = expected[static_cast<size_t>(step / 4 - 1)];
        const auto* const own = parameters[0].tensor.detach().data<float>();
        for (size_t i = 0; i < global.size(); ++i) ASSERT_NEAR(own[i], global[i], 2e-6) << step;
      }
    });
  }
}

TEST(LocalSgd, AfterAnAverageAllRanksHaveTheGlobalValues) {
  for (const int bits : {32, 8, 4}) {
    const std::vector<Ran> found = ran({.inner_steps = 3, .bits = bits}, 3, 6);
    for (const Ran& each : found) {
      EXPECT_EQ(each.parameters, found[0].globals) << bits;
      EXPECT_EQ(each.globals, found[0].globals) << bits;
    }
  }
}

TEST(LocalSgd, BetweenAveragesRanksDifferAndShareTheGlobalValues) {
  const std::vector<Ran> found = ran({.inner_steps = 3}, 2, 5);
  EXPECT_NE(found[0].parameters, found[1].parameters);
  EXPECT_EQ(found[0].globals, found[1].globals);
  EXPECT_EQ(found[0].globals, ran({.inner_steps = 3}, 2, 3)[0].globals);
}

TEST(LocalSgd, FragmentsAreAveragedInTurn) {
  all_ranks(2, [&](ProcessGroup& group) {
    const std::vector<std::vector<int64_t>> equal(4, {256});
    const auto parameters = parameters_of(equal);
    LocalSgd local(parameters, group, {.inner_steps = 8, .fragments = 4});
    std::vector<std::vector<int64_t>> when(4);
    for (int64_t step = 1; step <= 16; ++step) {
      own_step(parameters, group.rank(), step);
      local.after_update(step);
      for (size_t i = 0; i < 4; ++i) {
        if (bits_of_tensors({parameters[i].tensor.detach()}) == bits_of_tensors({local.global(i)}))
          when[i].push_back(step);
      }
    }
    EXPECT_EQ(when, (std::vector<std::vector<int64_t>>{{8, 16}, {6, 14}, {4, 12}, {2, 10}}));
  });
}

TEST(LocalSgd, WithADelayTheStepsMeanwhileAreKept) {
  all_ranks(2, [&](ProcessGroup& group) {
    const auto parameters = parameters_of({{300}});
    LocalSgd local(
        parameters, group,
        {.inner_steps = 6, .delay_steps = 2, .bits = 32, .learning_rate = 1, .momentum = 0});
    const auto change_by = [&](double change) {
      parameters[0].tensor.detach().add_(full({300}, change));
    };
    const auto value = [&] {
      return static_cast<double>(*parameters[0].tensor.detach().data<float>());
    };
    for (int64_t step = 1; step <= 8; ++step) {
      change_by(group.rank() == 0 ? 1 : 2);
      local.after_update(step);
      if (step == 7) {
        EXPECT_EQ(value(), 1 + 7 * (group.rank() + 1)) << "not used yet";
      }
    }
    // The mean of 6 and 12, and two steps of its own.
    EXPECT_EQ(value(), 1 + 9 + 2 * (group.rank() + 1));
    EXPECT_EQ(static_cast<double>(*local.global(0).data<float>()), 1 + 9);
  });
}

TEST(LocalSgd, WhatCodesLoseIsAddedLater) {
  constexpr int kAverages = 40;
  for (const int bits : {8, 4}) {
    double largest_error = 0;
    all_ranks(2, [&](ProcessGroup& group) {
      const auto parameters = parameters_of({{256}});
      LocalSgd local(parameters, group,
                     {.inner_steps = 1, .bits = bits, .learning_rate = 1, .momentum = 0});
      // One large change makes the step between codes larger than all others.
      const Tensor change = full({256}, 0.001);
      change.data<float>()[0] = 1;
      for (int64_t step = 1; step <= kAverages; ++step) {
        parameters[0].tensor.detach().add_(change);
        local.after_update(step);
      }
      const Tensor off = parameters[0].tensor.detach() - (change * kAverages + 1);
      if (group.rank() == 0) largest_error = max(abs(off)).item<double>();
    });
    // Two roundings by half a step; without what is kept, 40 x 0.001 would be lost.
    EXPECT_LT(largest_error, bits == 8 ? 0.011 : 0.2) << bits;
  }
}

TEST(LocalSgd, WhatCodesLoseComesWithTheNextAveragesWhereNothingElseChanges) {
  constexpr int kRanks = 3;
  all_ranks(kRanks, [](ProcessGroup& group) {
    const auto parameters = parameters_of(kShapes);
    LocalSgd local(parameters, group,
                   {.inner_steps = 1, .bits = 4, .learning_rate = 1, .momentum = 0});
    own_step(parameters, group.rank(), 1);
    for (int64_t step = 1; step <= 12; ++step) local.after_update(step);
    // A code of 4 bits loses up to a fourteenth of what is left to send.
    for (size_t i = 0; i < kShapes.size(); ++i) {
      const Tensor mean = zeros(kShapes[i], {DType::kF32, kCPU});
      for (int rank = 0; rank < kRanks; ++rank) {
        const auto seed = static_cast<uint32_t>(1000 + 100 * rank) + static_cast<uint32_t>(i);
        mean.add_(random_values(seed, kShapes[i]), 0.01 / kRanks);
      }
      const std::vector<double> expected = numbers_of(mean);
      const std::vector<double> got = numbers_of(local.global(i));
      for (size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k] - 1, expected[k], 1e-6) << i;
    }
  });
}

/// Number of operations of a kind that rank 0 has called so far.
int64_t called(const Communicator& communicator, OpKind kind) {
  const std::vector<FlightRecord> records = communicator.recorder().records();
  return std::ranges::count_if(
      records, [&](const FlightRecord& each) { return each.signature.kind == kind; });
}

TEST(LocalSgd, CodesOfTheMeanLeaveHalfWayThroughTheDelay) {
  all_communicators(2, [](ProcessGroup& group, Communicator& communicator) {
    const auto parameters = parameters_of(kShapes);
    LocalSgd local(parameters, group, {.inner_steps = 8, .delay_steps = 4, .bits = 8});
    for (int64_t step = 1; step <= 12; ++step) {
      local.after_update(step);
      EXPECT_EQ(called(communicator, OpKind::kAllToAll), step < 8 ? 0 : 1) << step;
      EXPECT_EQ(called(communicator, OpKind::kAllGather), step < 10 ? 0 : 1) << step;
    }
  });
}

TEST(LocalSgd, ItsWaitIsToldOnce) {
  all_ranks(2, [](ProcessGroup& group) {
    const auto parameters = parameters_of(kShapes);
    LocalSgd local(parameters, group, {.inner_steps = 1, .bits = 8});
    EXPECT_EQ(local.take_wait(), 0);
    local.after_update(1);
    EXPECT_GT(local.take_wait(), 0);
    EXPECT_EQ(local.take_wait(), 0);
  });
}

TEST(LocalSgd, BeginAnewWaitsForAnAverageThatIsOnTheWay) {
  std::atomic<bool> sent = false, came = false;
  all_ranks(2, [&](ProcessGroup& group) {
    const auto parameters = parameters_of(kShapes);
    LocalSgd local(parameters, group, {.inner_steps = 2, .delay_steps = 1, .bits = 32});
    local.after_update(1);
    if (group.rank() == 1) {
      while (!sent) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // rank 0 waits meanwhile
      came = true;
    }
    local.after_update(2);
    if (group.rank() == 0) sent = true;
    local.begin_anew();
    EXPECT_TRUE(came);
  });
}

TEST(LocalSgd, FinishLeavesTheMeanOnAllRanks) {
  for (const LocalSgdOptions& options :
       {LocalSgdOptions{.inner_steps = 5, .bits = 32},
        LocalSgdOptions{.inner_steps = 5, .fragments = 2, .delay_steps = 3, .bits = 8}}) {
    const std::vector<Ran> found = ran(options, 3, 7, /*finishes=*/true);
    for (const Ran& each : found) {
      EXPECT_EQ(each.parameters, found[0].parameters);
      EXPECT_EQ(each.globals, found[0].parameters);
    }
  }
  all_ranks(2, [&](ProcessGroup& group) {
    const auto parameters = parameters_of({{5}});
    LocalSgd local(parameters, group, {.inner_steps = 10, .bits = 32});
    parameters[0].tensor.detach().fill_(group.rank() == 0 ? 2 : 4);
    local.after_update(1);
    local.finish(1);
    EXPECT_EQ(*parameters[0].tensor.detach().data<float>(), 3) << "no outer learning rate";
  });
}

TEST(LocalSgd, FinishRightAfterAnAverageChangesNothing) {
  const LocalSgdOptions options{.inner_steps = 3};
  EXPECT_EQ(ran(options, 2, 6, true)[0].parameters, ran(options, 2, 6, false)[0].parameters);
}

TEST(LocalSgd, RunsAreRepeatedBitForBitOnTheCpuAndOnADeviceWithStreams) {
  const LocalSgdOptions options{.inner_steps = 6, .fragments = 2, .delay_steps = 3, .bits = 4};
  const std::vector<Ran> once = ran(options, 3, 14);
  const std::vector<Ran> again = ran(options, 3, 14);
  const std::vector<Ran> there = ran(options, 3, 14, false, parse_device("host:0"));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(once[rank].parameters, again[rank].parameters);
    EXPECT_EQ(once[rank].parameters, there[rank].parameters);
    EXPECT_EQ(once[rank].globals, there[rank].globals);
  }
}

TEST(LocalSgd, ExchangeSwapsParametersAndGlobalValues) {
  all_ranks(2, [&](ProcessGroup& group) {
    const auto parameters = parameters_of(kShapes);
    LocalSgd local(parameters, group, {.inner_steps = 4});
    own_step(parameters, group.rank(), 1);
    const Bits own = bits_of_tensors(tensors_of(parameters));
    const Bits shared = bits_of_tensors(globals_of(local));
    ASSERT_NE(own, shared);
    local.exchange();
    EXPECT_EQ(bits_of_tensors(tensors_of(parameters)), shared);
    EXPECT_EQ(bits_of_tensors(globals_of(local)), own);
    local.exchange();
    EXPECT_EQ(bits_of_tensors(tensors_of(parameters)), own);
  });
}

TEST(LocalSgd, GoesOnFromItsStateWhileAveragesAreOnTheWay) {
  const LocalSgdOptions options{.inner_steps = 6, .fragments = 2, .delay_steps = 3, .bits = 4};
  const std::vector<Ran> whole = ran(options, 3, 20);
  for (const int64_t at : {0, 2, 3, 4, 6, 7, 8, 9, 11}) {
    std::vector<Bits> resumed(3);
    all_ranks(3, [&](ProcessGroup& group) {
      const auto first = parameters_of(kShapes);
      LocalSgd before(first, group, options);
      for (int64_t step = 1; step <= at; ++step) {
        own_step(first, group.rank(), step);
        before.after_update(step);
      }
      before.settle();
      const auto parameters = parameters_of(kShapes);
      LocalSgd local(parameters, group, options);
      for (size_t i = 0; i < parameters.size(); ++i) {
        parameters[i].tensor.detach().copy_(first[i].tensor.detach());
        local.global(i).copy_(before.global(i));
      }
      const auto from = before.state(), into = local.state();
      ASSERT_EQ(from.size(), 5u);
      for (size_t i = 0; i < from.size(); ++i) {
        EXPECT_EQ(from[i].name, into[i].name);
        for (size_t j = 0; j < parameters.size(); ++j) into[i].tensors[j].copy_(from[i].tensors[j]);
      }
      local.restore(at);
      for (int64_t step = at + 1; step <= 20; ++step) {
        own_step(parameters, group.rank(), step);
        local.after_update(step);
      }
      resumed[static_cast<size_t>(group.rank())] = bits_of_tensors(tensors_of(parameters));
    });
    for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(resumed[rank], whole[rank].parameters) << at;
  }
}

TEST(LocalSgd, PartsOfAllRanksAreEveryElementOnce) {
  all_ranks(3, [&](ProcessGroup& group) {
    const auto parameters = parameters_of(kShapes);
    const LocalSgd local(parameters, group, {.inner_steps = 4, .fragments = 2});
    for (size_t i = 0; i < parameters.size(); ++i) {
      int64_t next = 0;
      for (int rank = 0; rank < 3; ++rank) {
        const LocalSgd::Part part = local.part_of(i, rank);
        if (part.first == part.end) continue;
        EXPECT_EQ(part.first, next);
        next = part.end;
      }
      EXPECT_EQ(next, parameters[i].tensor.numel());
    }
  });
}

TEST(LocalSgd, BeginAnewForgetsWhatCameBefore) {
  const LocalSgdOptions options{.inner_steps = 2, .bits = 4};
  const std::vector<Ran> fresh = ran(options, 2, 4);
  all_ranks(2, [&](ProcessGroup& group) {
    const auto parameters = parameters_of(kShapes);
    LocalSgd local(parameters, group, options);
    for (int64_t step = 1; step <= 5; ++step) {
      own_step(parameters, group.rank(), 50 + step);
      local.after_update(step);
    }
    for (const NamedTensor& each : parameters) each.tensor.detach().fill_(1);
    local.begin_anew();
    for (int64_t step = 1; step <= 4; ++step) {
      own_step(parameters, group.rank(), step);
      local.after_update(step);
    }
    EXPECT_EQ(bits_of_tensors(tensors_of(parameters)),
              fresh[static_cast<size_t>(group.rank())].parameters);
  });
}

TEST(LocalSgd, SendsFewBitsOfANumber) {
  const auto sent = [](int bits) {
    uint64_t bytes = 0;
    all_ranks(2, [&](ProcessGroup& group) {
      const auto parameters = parameters_of({{4096}});
      LocalSgd local(parameters, group, {.inner_steps = 2, .bits = bits});
      const uint64_t before = group.bytes_sent().value();
      local.after_update(1);
      local.after_update(2);
      if (group.rank() == 0) bytes = group.bytes_sent().value() - before;
    });
    return bytes;
  };
  EXPECT_EQ(sent(32), 4096u * 4);
  // Half of the codes to the other rank, then the mean of the own half.
  EXPECT_EQ(sent(8), 2 * 8 * (4u + 256));
  EXPECT_EQ(sent(4), 2 * 8 * (4u + 128));
}

TEST(LocalSgd, StateBytesCountWhatEachOptionKeeps) {
  all_ranks(2, [](ProcessGroup& group) {
    const auto bytes = [&](const LocalSgdOptions& options) {
      return LocalSgd(parameters_of({{64, 256}}), group, options).state_bytes();
    };
    constexpr int64_t kElements = 64 * 256, kFloat = 4;
    // The global values and the momentum; a sum under way and the values that it began with; what
    // codes left out, and of the part that is this rank's, what the second coding did.
    EXPECT_EQ(bytes({.inner_steps = 4, .bits = 32}), 2 * kElements * kFloat);
    EXPECT_EQ(bytes({.inner_steps = 4, .delay_steps = 1, .bits = 32}), 4 * kElements * kFloat);
    EXPECT_EQ(bytes({.inner_steps = 4, .bits = 4}), (3 * kElements + kElements / 2) * kFloat);
  });
}

TEST(LocalSgd, OptionsOutOfRangeAreRefused) {
  all_ranks(1, [&](ProcessGroup& group) {
    const auto refused = [&](const LocalSgdOptions& options, const char* field) {
      expect_error<DistError>([&] { LocalSgd(parameters_of({{2}}), group, options); },
                              "[local_sgd]", field);
    };
    refused({.inner_steps = 0}, "inner_steps");
    refused({.inner_steps = 4, .fragments = 5}, "fragments");
    refused({.inner_steps = 4, .delay_steps = 4}, "delay_steps");
    refused({.delay_steps = -1}, "delay_steps");
    refused({.bits = 16}, "bits");
    refused({.learning_rate = 0}, "learning_rate");
    refused({.momentum = 1}, "momentum");
    expect_error<DTypeError>(
        [&] {
          LocalSgd(parameters_of({{2}}, {DType::kF64, kCPU}), group, {});
        },
        "p0", "float64");
  });
}

TEST(LocalSgd, ItsOperationsAreLabelledWithTheirFragment) {
  const auto labels = labelled_operations([](ProcessGroup& group) {
    const auto parameters = parameters_of(kShapes, {DType::kF32, kCPU});
    LocalSgd local(parameters, group, {.inner_steps = 2, .fragments = 2, .bits = 8});
    for (int64_t step = 1; step <= 2; ++step) {
      own_step(parameters, group.rank(), step);
      local.after_update(step);
    }
  });
  EXPECT_THAT(labels, testing::ElementsAre("all_gather of fragment 1", "all_gather of fragment 2",
                                           "all_to_all of fragment 1", "all_to_all of fragment 2"));
}

}  // namespace
}  // namespace lockstep::dist

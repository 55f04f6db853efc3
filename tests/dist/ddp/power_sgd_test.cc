#include "dist/ddp/power_sgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/device/stream_sanitizer.h"
#include "core/ops/matmul/matmul.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/known_gradients.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;
using Numbers = std::vector<std::vector<double>>;  // by gradient

/// Gradients of rank `rank` in step `step`.
using Gradients = std::function<std::vector<Tensor>(int rank, int step)>;

/// The bits of all numbers, for comparisons in which a NaN equals itself.
std::string bits_of(const std::vector<Numbers>& steps) {
  std::string bits;
  for (const Numbers& step : steps) {
    for (const std::vector<double>& each : step) {
      bits.append(reinterpret_cast<const char*>(each.data()), each.size() * sizeof(double));
    }
  }
  return bits;
}

/// Gradients after each step of `ranks` ranks. Checks that they are equal on all ranks.
std::vector<Numbers> run(const Shapes& shapes, const PowerSgdOptions& options, int ranks, int steps,
                         const Gradients& gradients, TensorOptions tensors = {DType::kF32, kCPU}) {
  std::vector<std::vector<Numbers>> found(static_cast<size_t>(ranks));
  all_ranks(ranks, [&](ProcessGroup& group) {
    const OwnCurrentStream own(tensors.device.value_or(kCPU));
    const std::vector<NamedTensor> parameters = parameters_of(shapes, tensors);
    ReducerOptions sums;
    sums.communication_hook = power_sgd_hook(options);
    Reducer reducer(parameters, &group, sums);
    for (int step = 0; step < steps; ++step) {
      step_with(reducer, parameters, gradients(group.rank(), step));
      Numbers numbers;
      for (const Tensor& each : reducer.gradients()) numbers.push_back(numbers_of(each));
      found[static_cast<size_t>(group.rank())].push_back(std::move(numbers));
    }
  });
  for (const auto& each : found) EXPECT_TRUE(bits_of(each) == bits_of(found[0])) << "ranks differ";
  return found[0];
}

/// Random gradients.
Gradients gradients_of(const Shapes& shapes) {
  return [shapes](int rank, int step) {
    std::vector<Tensor> list;
    for (const std::vector<int64_t>& shape : shapes) {
      const auto seed = 1000 * static_cast<uint32_t>(step) + 10 * static_cast<uint32_t>(rank);
      list.push_back(random_values(seed + static_cast<uint32_t>(list.size()), shape));
    }
    return list;
  };
}

std::vector<double> sum_over_ranks(const Gradients& gradients, int ranks, int step, size_t index) {
  std::vector<double> sum = numbers_of(gradients(0, step)[index]);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<double> next = numbers_of(gradients(rank, step)[index]);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
  }
  return sum;
}

double length(const std::vector<double>& numbers) {
  double squares = 0;
  for (const double each : numbers) squares += each * each;
  return std::sqrt(squares);
}

/// |a - b| / |b|.
double distance(std::vector<double> a, const std::vector<double>& b) {
  for (size_t i = 0; i < b.size(); ++i) a[i] -= b[i];
  return length(a) / length(b);
}

Tensor product(uint32_t seed, int64_t rows, int64_t columns, int64_t rank) {
  return mm(random_values(seed, {rows, rank}).to(DType::kF64),
            random_values(seed + 1, {rank, columns}).to(DType::kF64));
}

TEST(PowerSgd, AtFullRankItIsTheSum) {
  const Shapes shapes = {{12, 7}, {5, 30}, {4, 3, 2, 2}};
  const Gradients gradients = gradients_of(shapes);
  const auto found = run(shapes, {.rank = 100, .min_compression = 0}, 3, 4, gradients);
  for (int step = 0; step < 4; ++step) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_LT(
          distance(found[static_cast<size_t>(step)][i], sum_over_ranks(gradients, 3, step, i)),
          1e-5);
    }
  }
}

TEST(PowerSgd, ASumOfThatRankIsExact) {
  const Shapes shapes = {{40, 24}, {64, 2, 8}};
  // Each rank has a matrix of rank 2, so that the sum has rank 4.
  const Gradients gradients = [](int rank, int step) {
    const uint32_t seed = 100 * static_cast<uint32_t>(step) + 10 * static_cast<uint32_t>(rank);
    return std::vector<Tensor>{product(seed, 40, 24, 2),
                               product(seed + 5, 64, 16, 2).view({64, 2, 8})};
  };
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const auto found = run(shapes, {.rank = 4}, 2, 1, gradients, {dtype, kCPU});
    for (size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_LT(distance(found[0][i], sum_over_ranks(gradients, 2, 0, i)),
                dtype == DType::kF64 ? 1e-10 : 1e-4);
    }
  }
}

TEST(PowerSgd, ARankThatIsLowerThanAskedForIsExactAtEveryScale) {
  for (const float scale : {1.0F, 1e-18F, 1e18F}) {
    const Gradients gradients = [&](int rank, int) {
      return std::vector<Tensor>{product(3, 40, 24, 1) * (scale * static_cast<float>(rank + 1))};
    };
    const auto found = run({{40, 24}}, {.rank = 4}, 2, 5, gradients);
    for (const Numbers& each : found) {
      EXPECT_LT(distance(each[0], sum_over_ranks(gradients, 2, 0, 0)), 1e-4) << scale;
    }
  }
}

TEST(PowerSgd, StepsWithoutAGradientDoNotCostFactors) {
  // Two steps of zeros, one of rank 1, then one of rank 3.
  const Gradients gradients = [](int rank, int step) {
    const Tensor matrix =
        step < 2 ? zeros({40, 24}) : product(7, 40, 24, step == 2 ? 1 : 3) * (rank + 1.0);
    return std::vector<Tensor>{matrix};
  };
  const auto found = run({{40, 24}}, {.rank = 3}, 2, 4, gradients);
  EXPECT_EQ(length(found[1][0]), 0);
  for (const int step : {2, 3}) {
    EXPECT_LT(distance(found[static_cast<size_t>(step)][0], sum_over_ranks(gradients, 2, step, 0)),
              1e-4);
  }
}

TEST(PowerSgd, WhatIsKeptBackComesLater) {
  const Shapes shapes = {{12, 10}};
  const Gradients constant = [](int rank, int) {
    return std::vector<Tensor>{random_values(static_cast<uint32_t>(rank), {12, 10})};
  };
  const std::vector<double> gradient = sum_over_ranks(constant, 2, 0, 0);
  constexpr int kSteps = 120;
  const auto found = run(shapes, {.rank = 2, .min_compression = 1}, 2, kSteps, constant);
  std::vector<double> applied(gradient.size());
  for (const Numbers& each : found) {
    for (size_t i = 0; i < applied.size(); ++i) applied[i] += each[0][i] / kSteps;
  }
  EXPECT_GT(distance(found[0][0], gradient), 0.3) << "one step is far from it";
  EXPECT_LT(distance(applied, gradient), 0.06);
}

TEST(PowerSgd, TheFactorsOfTheStepBeforeLeadToTheBestOnes) {
  // Singular values 8, 4 and eighteen times 1: the best approximation of rank 2 keeps 8 and 4.
  const Tensor matrix = zeros({20, 20});
  for (int64_t i = 0; i < 20; ++i) matrix.data<float>()[21 * i] = i == 0 ? 8 : i == 1 ? 4 : 1;
  const double best = std::sqrt(18.0 / (64 + 16 + 18));
  std::vector<double> distances;
  all_ranks(2, [&](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of({{20, 20}});
    ReducerOptions options;
    options.communication_hook = power_sgd_hook({.rank = 2, .min_compression = 1});
    Reducer reducer(parameters, &group, options);
    // Subtracting the error feedback makes each step compress the same matrix.
    Tensor error = zeros({20, 20});
    for (int step = 0; step < 8; ++step) {
      step_with(reducer, parameters, {matrix - error});
      const Tensor half = reducer.gradients()[0] * 0.5;
      error = matrix - half;
      if (group.rank() == 0) distances.push_back(distance(numbers_of(half), numbers_of(matrix)));
    }
  });
  EXPECT_GT(distances.front(), 1.02 * best);
  EXPECT_LT(distances.back(), 1.001 * best);
}

TEST(PowerSgd, WhatDoesNotPayIsSummedAsItIs) {
  // 4 * (16 + 16) = 128 of 256 elements: a compression of 2 is enough. 4 * (15 + 16) of 240 is not.
  const Shapes shapes = {{16, 16}, {15, 16}, {100}, {}, {0, 5}, {3, 200}};
  const Gradients gradients = gradients_of(shapes);
  const auto found = run(shapes, {.rank = 4}, 2, 2, gradients);
  for (const size_t i : {1, 2, 3, 4, 5}) {
    const std::vector<double> sum = sum_over_ranks(gradients, 2, 1, i);
    ASSERT_EQ(found[1][i].size(), sum.size());
    for (size_t j = 0; j < sum.size(); ++j) {
      EXPECT_EQ(found[1][i][j], static_cast<float>(sum[j])) << i;
    }
  }
  EXPECT_GT(distance(found[1][0], sum_over_ranks(gradients, 2, 1, 0)), 0.1);
}

TEST(PowerSgd, VectorsAndNumbersAreSummedAsTheyAre) {
  const Shapes shapes = {{100}, {}};
  const Gradients gradients = gradients_of(shapes);
  const auto found = run(shapes, {.rank = 4, .min_compression = 0}, 2, 2, gradients);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<double> sum = sum_over_ranks(gradients, 2, 1, i);
    for (size_t j = 0; j < sum.size(); ++j) {
      EXPECT_EQ(found[1][i][j], static_cast<float>(sum[j])) << i;
    }
  }
}

TEST(PowerSgd, SendsTheFactorsAndTheRestAlone) {
  const Shapes shapes = {{64, 48}, {64}, {32, 128}, {32}};
  const Gradients gradients = gradients_of(shapes);
  all_ranks(2, [&](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of(shapes);
    ReducerOptions options;
    options.communication_hook = power_sgd_hook({.rank = 3, .start_step = 2});
    Reducer reducer(parameters, &group, options);
    uint64_t sent = 0;
    for (int step = 0; step < 4; ++step) {
      const uint64_t before = group.bytes_sent().value();
      step_with(reducer, parameters, gradients(group.rank(), step));
      sent = group.bytes_sent().value() - before;
      if (step == 1) {
        EXPECT_GE(sent, 4u * (64 * 48 + 64 + 32 * 128 + 32));
      }
    }
    EXPECT_EQ(sent, 4u * (3 * (64 + 48) + 64 + 3 * (32 + 128) + 32));
  });
}

TEST(PowerSgd, BeginsWithItsFirstStep) {
  const Shapes shapes = {{40, 24}, {9}};
  const Gradients gradients = gradients_of(shapes);
  const auto found = run(shapes, {.rank = 1, .start_step = 2}, 2, 3, gradients);
  for (const int step : {0, 1}) {
    EXPECT_LT(distance(found[static_cast<size_t>(step)][0], sum_over_ranks(gradients, 2, step, 0)),
              1e-6);
  }
  EXPECT_GT(distance(found[2][0], sum_over_ranks(gradients, 2, 2, 0)), 0.5);
}

TEST(PowerSgd, ItsFirstStepIsCountedInStepsAndNotInBuckets) {
  const Shapes shapes = {{40, 24}, {30, 30}, {32, 32}};
  const Gradients gradients = gradients_of(shapes);
  all_ranks(2, [&](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of(shapes);
    ReducerOptions options;
    options.buckets = {.first_bytes = 1, .bytes = 1};
    options.communication_hook = power_sgd_hook({.rank = 1, .start_step = 2});
    Reducer reducer(parameters, &group, options);
    for (int step = 0; step < 3; ++step) {
      step_with(reducer, parameters, gradients(group.rank(), step));
      ASSERT_EQ(reducer.plan().buckets.size(), shapes.size());
      for (size_t i = 0; i < shapes.size(); ++i) {
        const double off =
            distance(numbers_of(reducer.gradients()[i]), sum_over_ranks(gradients, 2, step, i));
        const bool compresses = off > 0.5;
        EXPECT_EQ(compresses, step == 2) << "step " << step << ", gradient " << i << ": " << off;
      }
    }
  });
}

TEST(PowerSgd, AStepThatIsNotFiniteChangesNoLaterOne) {
  const Shapes shapes = {{40, 24}, {30, 30}, {9}};
  const Gradients gradients = gradients_of(shapes);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const auto found = run(shapes, {.rank = 2}, 2, 4, [&](int rank, int step) {
      std::vector<Tensor> list = gradients(rank, step > 1 ? step - 1 : step);
      if (step == 1 && rank == 1) list[0].data<float>()[17] = bad;
      return list;
    });
    EXPECT_FALSE(std::isfinite(found[1][0][17]));
    const auto without = run(shapes, {.rank = 2}, 2, 3, gradients);
    EXPECT_TRUE(found[2] == without[1]);
    EXPECT_TRUE(found[3] == without[2]);
  }
}

TEST(PowerSgd, BitsDoNotDependOnBucketsOrOnTheDevice) {
  const Shapes shapes = {{40, 24}, {30, 30}, {9}, {64, 16}};
  const Gradients gradients = gradients_of(shapes);
  const auto expected = run(shapes, {.rank = 3}, 3, 3, gradients);
  stream_sanitizer::enable(true);
  const auto on_host =
      run(shapes, {.rank = 3}, 3, 3, gradients, {DType::kF32, Device(DeviceType::kHost, 0)});
  EXPECT_EQ(stream_sanitizer::reports(), 0);
  stream_sanitizer::enable(false);
  EXPECT_TRUE(on_host == expected);

  std::vector<Numbers> in_small_buckets;
  all_ranks(3, [&](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of(shapes);
    ReducerOptions options;
    options.buckets = {.first_bytes = 1, .bytes = 1};
    options.communication_hook = power_sgd_hook({.rank = 3});
    Reducer reducer(parameters, &group, options);
    for (int step = 0; step < 3; ++step) {
      step_with(reducer, parameters, gradients(group.rank(), step));
      if (group.rank() != 0) continue;
      in_small_buckets.emplace_back();
      for (const Tensor& each : reducer.gradients()) {
        in_small_buckets.back().push_back(numbers_of(each));
      }
    }
  });
  EXPECT_TRUE(in_small_buckets == expected);
}

TEST(PowerSgd, TheSeedChoosesWhereTheSearchBegins) {
  const Shapes shapes = {{40, 24}};
  const Gradients gradients = gradients_of(shapes);
  EXPECT_TRUE(run(shapes, {.rank = 2}, 2, 1, gradients) ==
              run(shapes, {.rank = 2}, 2, 1, gradients));
  EXPECT_FALSE(run(shapes, {.rank = 2}, 2, 1, gradients) ==
               run(shapes, {.rank = 2, .seed = 1}, 2, 1, gradients));
}

TEST(PowerSgd, EachParameterBeginsItsSearchElsewhere) {
  const Shapes shapes = {{12, 9}, {12, 9}};
  const Gradients alike = [](int, int) {
    const Tensor gradient = random_values(7, {12, 9});
    return std::vector<Tensor>{gradient, gradient};
  };
  const auto found = run(shapes, {.rank = 1, .min_compression = 0}, 2, 1, alike);
  EXPECT_NE(found[0][0], found[0][1]);
}

TEST(PowerSgd, AGradientOfALowerRankCostsNoLaterStepItsFactors) {
  const std::vector<std::vector<int64_t>> shapes = {{40, 24}};
  all_ranks(2, [&](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of(shapes);
    ReducerOptions sums;
    sums.communication_hook = power_sgd_hook({.rank = 2});
    Reducer reducer(parameters, &group, sums);
    const auto sent = [&](const Tensor& gradient) {
      group.barrier().wait();
      const uint64_t before = group.bytes_sent().value();
      step_with(reducer, parameters, {gradient});
      return group.bytes_sent().value() - before;
    };
    const Tensor column = ones({40, 1}), row = ones({1, 24});
    (void)sent(mm(column, row));  // the ranks agree on the order of gradients as well
    const uint64_t of_factors = sent(mm(column, row));
    EXPECT_EQ(of_factors, (40 + 24) * 2 * sizeof(float)) << "to the other rank";
    EXPECT_EQ(sent(random_values(3, {40, 24})), of_factors);
  });
}

TEST(PowerSgd, ColumnsThatAreNearlyAlikeAreExactAsWell) {
  // The second singular value is so small beside the first that one projection leaves the second
  // column of P with a part along the first that is mostly rounding.
  const Tensor large = product(1, 40, 24, 1), small = product(3, 40, 24, 1) * 1e-7;
  const Gradients gradients = [&](int, int) { return std::vector<Tensor>{large + small}; };
  const auto found = run({{40, 24}}, {.rank = 2}, 2, 1, gradients, {DType::kF64, kCPU});
  EXPECT_LT(distance(found[0][0], numbers_of((large + small) * 2)), 1e-12);
}

TEST(PowerSgd, OptionsOutOfRangeAreRefused) {
  expect_error<DistError>([] { power_sgd_hook({.rank = 0}); }, "[power_sgd] rank", "got 0");
  expect_error<DistError>([] { power_sgd_hook({.start_step = -1}); }, "start_step", "got -1");
  expect_error<DistError>([] { power_sgd_hook({.min_compression = NAN}); }, "min_compression");
}

TEST(PowerSgd, SixteenBitsAreRefusedByName) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const std::vector<NamedTensor> parameters = parameters_of({{40, 24}}, {DType::kBF16, kCPU});
    ReducerOptions options;
    options.communication_hook = power_sgd_hook();
    Reducer reducer(parameters, &group, options);
    step_with(reducer, parameters, {ones({40, 24})});
  });
  EXPECT_THAT(text_of(errors[0]) + text_of(errors[1]),
              testing::HasSubstr("[power_sgd] gradient of parameter p0: expected float32 or "
                                 "float64, got bfloat16."));
}

TEST(PowerSgd, TheStateOfOneModelIsNotTakenForAnothers) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    ReducerOptions options;
    options.communication_hook = power_sgd_hook({.rank = 1});
    for (const int64_t rows : {40, 48}) {
      const std::vector<NamedTensor> parameters = parameters_of({{rows, 24}});
      Reducer reducer(parameters, &group, options);
      step_with(reducer, parameters, {ones({rows, 24})});
    }
  });
  EXPECT_THAT(text_of(errors[0]) + text_of(errors[1]),
              testing::HasSubstr("expected float32[40, 24] on cpu as in the steps before, got "
                                 "float32[48, 24] on cpu. Make a hook for each reducer."));
}

}  // namespace
}  // namespace lockstep::dist

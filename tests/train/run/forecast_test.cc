#include "train/run/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "configs/cluster.h"
#include "configs/cluster.pb.h"
#include "configs/run.pb.h"
#include "tests/core/expect_error.h"
#include "tests/train/tiny_run.h"
#include "train/run/plan.h"

namespace lockstep::train {
namespace {

using config::ParallelConfig;

const std::string kHosts =
    "hosts: 4 ranks_per_host: 2 inside { gbit_per_second: 100 } between { gbit_per_second: 1 } "
    "collectives: DIRECT ";

config::ClusterConfig cluster(const std::string& more = "measured { step_ms: 100 update_ms: 10 }") {
  return config::load_cluster_text(kHosts + more);
}

config::RunConfig config_of(const TemporaryDirectory& folder, const std::string& more = "",
                            const std::string& model = "width: 64") {
  return tiny_run(folder, "model { gpt2 { " + model + " } } " + more);
}

const StrategyForecast& find(const Forecast& forecast, ParallelConfig::Strategy strategy) {
  return *std::ranges::find(forecast.strategies, strategy, &StrategyForecast::strategy);
}

TEST(Forecast, HasEveryStrategyTheFastestFirst) {
  const TemporaryDirectory folder;
  const Forecast forecast = forecast_step(config_of(folder), cluster(), 8);
  EXPECT_EQ(forecast.ranks, 8);
  EXPECT_EQ(forecast.hosts, 4);
  ASSERT_EQ(forecast.strategies.size(), 5U);
  for (size_t i = 1; i < forecast.strategies.size(); ++i) {
    EXPECT_LE(forecast.strategies[i - 1].step.seconds, forecast.strategies[i].step.seconds);
  }
  EXPECT_EQ(find(forecast, ParallelConfig::HYBRID_SHARD).shard_size, 2) << "the ranks of a host";
}

TEST(Forecast, HasLocalStepsBesideTheOthersWhereTheConfigHasThem) {
  const TemporaryDirectory folder;
  const config::RunConfig config = config_of(
      folder, "parallel { local_sgd { inner_steps: 20 bits: 4 fragments: 3 } } precision: F32");
  const Forecast forecast = forecast_step(config, cluster(), 8);
  ASSERT_EQ(forecast.strategies.size(), 6U);
  const auto& local = *std::ranges::find(forecast.strategies, true, &StrategyForecast::local_steps);
  EXPECT_EQ(local.name(), "DDP, local_sgd");
  EXPECT_LT(local.step.seconds, find(forecast, ParallelConfig::FULL_SHARD).step.seconds);
  // The bytes and the memory are those of the plan of such a run.
  const RunPlan plan = plan_run(config, 8);
  EXPECT_EQ(local.memory_bytes, plan.peak_bytes);
  const auto sent =
      static_cast<double>(plan.communication.all_to_all + plan.communication.all_gather);
  EXPECT_NEAR(local.step.sent_bytes, sent, 0.01 * sent);
}

TEST(Forecast, OfOneRankIsTheMeasuredComputation) {
  const TemporaryDirectory folder;
  const Forecast forecast = forecast_step(config_of(folder), cluster(), 1);
  ASSERT_EQ(forecast.strategies.size(), 1U);
  EXPECT_DOUBLE_EQ(forecast.strategies[0].step.seconds, 0.1);
  EXPECT_EQ(forecast.strategies[0].step.exposed, 0);
  EXPECT_EQ(forecast.strategies[0].limit_name(), "computation");
}

TEST(Forecast, BeginsToSendWhenTheFirstGradientsAreMeasuredToBeReady) {
  const TemporaryDirectory folder;
  const config::RunConfig config = config_of(folder);
  const auto ddp = [&](const std::string& first_ready) {
    const std::string text = "hosts: 2 ranks_per_host: 1 between { gbit_per_second: 0.0001 } ";
    const config::ClusterConfig two = config::load_cluster_text(
        text + "measured { step_ms: 100 update_ms: 10 " + first_ready + " }");
    return find(forecast_step(config, two, 2), ParallelConfig::DDP).step.seconds;
  };
  // On so slow a link the step is what comes before the first bucket, and all transfers.
  EXPECT_NEAR(ddp("first_ready_ms: 80") - ddp("first_ready_ms: 50"), 0.03, 0.001);
  EXPECT_NEAR(ddp(""), ddp("first_ready_ms: 35"), 0.02);
}

TEST(Forecast, SendsAndHoldsWhatThePlanSays) {
  const TemporaryDirectory folder;
  for (const char* more :
       {"train { batch_size: 16 }", "train { batch_size: 16 } precision: BF16_MIXED",
        "train { batch_size: 16 micro_batch_size: 1 }"}) {
    const config::RunConfig config = config_of(folder, more);
    const Forecast forecast = forecast_step(config, cluster(), 8);
    for (const StrategyForecast& each : forecast.strategies) {
      config::RunConfig with = config;
      with.mutable_parallel()->set_strategy(static_cast<ParallelConfig::Strategy>(each.strategy));
      with.mutable_parallel()->set_shard_size(each.shard_size);
      const RunPlan plan = plan_run(with, 8);
      const auto planned = static_cast<double>(plan.communication.sum());
      // The last rank's plan leaves out vectors that the first one sends to all.
      EXPECT_NEAR(each.step.sent_bytes / planned, 1, 0.03) << each.name() << " " << more;
      // The last rank's part of the smallest units is padding, without optimizer state.
      EXPECT_GE(each.memory_bytes, plan.peak_bytes);
      EXPECT_LE(static_cast<double>(each.memory_bytes), 1.1 * static_cast<double>(plan.peak_bytes));
    }
  }
}

TEST(Forecast, PutsWhatDoesNotFitLastWithMemoryAsItsLimit) {
  const TemporaryDirectory folder;
  const config::RunConfig config = config_of(folder, "", "width: 256 layers: 8");
  const Forecast roomy = forecast_step(config, cluster(), 8);
  const auto gib = [&](ParallelConfig::Strategy strategy) {
    return static_cast<double>(find(roomy, strategy).memory_bytes) / (1 << 30);
  };
  const double limit = (gib(ParallelConfig::DDP) + gib(ParallelConfig::FULL_SHARD)) / 2;
  const Forecast tight = forecast_step(
      config, cluster("measured { step_ms: 100 } memory_gib: " + std::to_string(limit)), 8);
  EXPECT_TRUE(find(tight, ParallelConfig::FULL_SHARD).fits);
  EXPECT_FALSE(find(tight, ParallelConfig::DDP).fits);
  EXPECT_EQ(find(tight, ParallelConfig::DDP).limit_name(), "memory");
  EXPECT_TRUE(tight.strategies.front().fits);
  EXPECT_FALSE(tight.strategies.back().fits);
  const Forecast none =
      forecast_step(config, cluster("measured { step_ms: 100 } memory_gib: 0.001"), 8);
  for (const StrategyForecast& each : none.strategies) EXPECT_FALSE(each.fits) << each.name();
}

TEST(Forecast, MakesShardsLargerUntilTheyFit) {
  const TemporaryDirectory folder;
  const config::RunConfig config = config_of(folder, "", "width: 256 layers: 8");
  const auto hybrid = [&](const std::string& more) {
    const Forecast forecast =
        forecast_step(config, cluster("measured { step_ms: 100 } " + more), 8);
    return find(forecast, ParallelConfig::HYBRID_SHARD);
  };
  const StrategyForecast two = hybrid("");
  EXPECT_EQ(two.shard_size, 2);
  const double less = 0.98 * static_cast<double>(two.memory_bytes) / (1 << 30);
  EXPECT_EQ(hybrid("memory_gib: " + std::to_string(less)).shard_size, 4);
}

TEST(Forecast, HasNoShardsOfOneRank) {
  const TemporaryDirectory folder;
  const std::string hosts =
      "ranks_per_host: 1 between { gbit_per_second: 1 } measured { step_ms: 9 }";
  const auto sizes = [&](int64_t ranks) {
    std::vector<int64_t> found;
    const config::ClusterConfig alone = config::load_cluster_text("hosts: 8 " + hosts);
    for (const auto& each : forecast_step(config_of(folder), alone, ranks).strategies) {
      if (each.shard_size > 0) found.push_back(each.shard_size);
    }
    return found;
  };
  EXPECT_THAT(sizes(2), testing::IsEmpty());
  EXPECT_THAT(sizes(8), testing::ElementsAre(2));
}

TEST(Forecast, EstimatesComputationFromOperationsAndPeak) {
  const TemporaryDirectory folder;
  const std::string peak = "peak { tflops: 0.001 efficiency: 0.5 }";
  const Forecast forecast = forecast_step(config_of(folder), cluster(peak), 8);
  const StrategyForecast& best = forecast.strategies.front();
  EXPECT_NEAR(best.step.compute, forecast.flops_per_step / 8 / 0.5e9, 0.1 * best.step.compute);
  EXPECT_GT(forecast.utilization(best), 0);
  EXPECT_LT(forecast.utilization(best), 0.55);
  EXPECT_NEAR(forecast.tokens_per_second(best), 8 * 16 / best.step.seconds, 1e-6);
  const Forecast slow = forecast_step(
      config_of(folder),
      cluster(peak + " stragglers { deviation: 0.1 slow_hosts: 1 slow_factor: 2 }"), 8);
  EXPECT_GT(slow.strategies.front().step.straggling, best.step.compute);
}

TEST(Forecast, SaysWhichStrategyTheConfigCannotHave) {
  const TemporaryDirectory folder;
  const Forecast forecast = forecast_step(config_of(folder,
                                                    "optimizer { adafactor {} clip_grad_norm: 0 "
                                                    "optimizer_in_backward: true }"),
                                          cluster(), 8);
  EXPECT_EQ(forecast.strategies.front().strategy, ParallelConfig::DDP);
  EXPECT_THAT(find(forecast, ParallelConfig::FULL_SHARD).problem, testing::HasSubstr("adafactor"));
}

TEST(Forecast, RefusesRanksThatTheClusterHasNot) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      config_of(folder, "train { batch_size: 48 micro_batch_size: 1 }");
  const auto refuses = [&](int64_t ranks, const std::string& says) {
    expect_error<ConfigError>([&] { forecast_step(config, cluster(), ranks); }, "--ranks", says);
  };
  refuses(16, "1 to 8");
  refuses(0, "1 to 8");
  refuses(3, "multiple");
  expect_error<ConfigError>(
      [&] { forecast_step(config_of(folder, "parallel { bf16_compress {} }"), cluster(), 8); },
      "communication hook");
  expect_error<ConfigError>(
      [&] { forecast_step(config_of(folder, "train { batch_size: 9 }"), cluster(), 8); },
      "cannot share a step");
}

}  // namespace
}  // namespace lockstep::train

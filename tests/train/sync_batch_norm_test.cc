#include "train/sync_batch_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "nn/image_layers.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "tests/train/table_run.h"

namespace lockstep::train {
namespace {

/// A small ResNet with small buckets, which are launched between the collectives of backward.
/// `train` is added to its TrainConfig.
config::RunConfig synchronized_run(const TemporaryDirectory& folder, const std::string& more = "",
                                   const std::string& train = "") {
  return tiny_run(
      folder,
      tiny_resnet(folder, "1, 1") +
          fmt::format(
              "parallel {{ bucket_mib: 0.005 first_bucket_mib: 0.002 sync_batch_norm: true }} "
              "train {{ batch_size: 24 {} }} {}",
              train, more));
}

/// Losses and norms of a run, its final buffers, and an evaluation.
struct Course {
  Trace trace;
  std::vector<double> buffers;
  double held_out = 0;
};

Course course(Trainer& trainer, int steps) {
  Course result{.trace = trace(trainer, steps)};
  for (const nn::NamedParameter& buffer : trainer.task().model().named_buffers()) {
    const Tensor here = buffer.tensor.to(kCPU).to(DType::kF64).contiguous();
    result.buffers.insert(result.buffers.end(), here.data<double>(),
                          here.data<double>() + here.numel());
  }
  result.held_out = trainer.evaluate(0)->loss;
  return result;
}

Course course_alone(const config::RunConfig& config, int steps) {
  Trainer trainer = Trainer::create(config);
  return course(trainer, steps);
}

std::vector<Course> courses_on_ranks(const config::RunConfig& config, int size, int steps) {
  return trained_on_ranks(config, size, [&](Trainer& trainer) { return course(trainer, steps); });
}

void expect_same(const Course& one, const Course& other) {
  EXPECT_EQ(one.trace, other.trace);
  EXPECT_EQ(one.buffers, other.buffers);
  EXPECT_EQ(one.held_out, other.held_out);
}

double furthest(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]) / (1 + std::abs(b[i])));
  }
  return most;
}

TEST(SyncBatchNorm, LossesAreThoseOfOneRankWithTheWholeMicroBatch) {
  const TemporaryDirectory folder;
  for (const char* more : {"", "precision: BF16_MIXED"}) {
    const double tolerance = *more == '\0' ? 2e-5 : 2e-2;
    const config::RunConfig config = synchronized_run(folder, more);
    const Course one = course_alone(config, 5);
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks {}", ranks, more));
      const std::vector<Course> found = courses_on_ranks(config, ranks, 5);
      for (const Course& each : found) expect_same(each, found[0]);
      EXPECT_LT(furthest(found[0].trace.losses, one.trace.losses), tolerance);
      EXPECT_LT(furthest(found[0].trace.norms, one.trace.norms), 10 * tolerance);
      EXPECT_LT(furthest(found[0].buffers, one.buffers), tolerance);
      EXPECT_NEAR(found[0].held_out, one.held_out, tolerance);
    }
  }
}

TEST(SyncBatchNorm, WithoutItARanksOwnSamplesGiveOtherLosses) {
  const TemporaryDirectory folder;
  config::RunConfig config = synchronized_run(folder);
  const Course one = course_alone(config, 5);
  config.mutable_parallel()->set_sync_batch_norm(false);
  EXPECT_GT(furthest(courses_on_ranks(config, 3, 5)[0].trace.losses, one.trace.losses), 1e-3);
}

TEST(SyncBatchNorm, DevicesAndRecomputationChangeNoBit) {
  const TemporaryDirectory folder;
  // Two micro-batches per step.
  config::RunConfig config = synchronized_run(folder, "", "micro_batch_size: 6");
  const Course plain = courses_on_ranks(config, 2, 3)[0];
  for (const auto recompute : {config::ModelConfig::CHEAP, config::ModelConfig::BLOCK}) {
    config.mutable_model()->set_recompute(recompute);
    for (const Course& each : courses_on_ranks(config, 2, 3)) expect_same(each, plain);
  }
  config.mutable_model()->set_recompute(config::ModelConfig::NONE);
  config.set_device("host:0");
  for (const Course& each : courses_on_ranks(config, 2, 3)) expect_same(each, plain);
}

TEST(SyncBatchNorm, AMicroBatchOfAllRanksCountsOnce) {
  const TemporaryDirectory folder;
  const config::RunConfig config = synchronized_run(folder, "", "micro_batch_size: 6");
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    Trainer trainer =
        Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
    for (int i = 0; i < 3; ++i) trainer.step();
    int64_t found = 0;
    for (const nn::NamedParameter& buffer : trainer.task().model().named_buffers()) {
      if (!buffer.name.ends_with("num_batches_tracked")) continue;
      EXPECT_EQ(buffer.tensor.item<int64_t>(), 3 * 2) << buffer.name;
      ++found;
    }
    EXPECT_GT(found, 3);
  }));
}

TEST(SyncBatchNorm, RanksThatDoOtherNumbersOfMicroBatchesAreRefused) {
  const TemporaryDirectory folder;
  const config::RunConfig config = synchronized_run(folder, "", "micro_batch_size: 3 leaves: 8");
  const auto errors = dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    Trainer trainer =
        Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
  });
  for (const std::exception_ptr& error : errors) {
    expect_error<ConfigError>([&] { std::rethrow_exception(error); },
                              "expected every rank to do as many micro-batches of a step");
  }
}

TEST(SyncBatchNorm, ConvertsEveryBatchNormAndNothingElse) {
  const TemporaryDirectory folder;
  const config::RunConfig image_config = synchronized_run(folder), text_config = tiny_run(folder);
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    const std::unique_ptr<nn::Classifier> resnet = build_classifier(image_config);
    int64_t layers = 0;
    resnet->for_each([&](nn::Module& module) {
      layers += dynamic_cast<nn::BatchNorm2d*>(&module) != nullptr ? 1 : 0;
    });
    EXPECT_EQ(layers, 6);
    EXPECT_EQ(convert_sync_batchnorm(*resnet, group), layers);
    EXPECT_EQ(convert_sync_batchnorm(*build_model(text_config), group), 0);
  }));
}

}  // namespace
}  // namespace lockstep::train

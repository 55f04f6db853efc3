#include "train/joining/state_giver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/run.pb.h"
#include "core/ops/factory/factory.h"
#include "dist/rendezvous/newcomer.h"
#include "dist/rendezvous/socket.h"
#include "tests/core/base/comes_true.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "tests/train/table_run.h"
#include "train/joining/state_taker.h"

namespace lockstep::train {
namespace {

using Standing = StateGiver::Standing;

/// A process that takes the state of a run, from the same seed.
struct Process {
  explicit Process(const config::RunConfig& config)
      : legacy(Trainer::create(config).leave()), taker(config, legacy) {}

  Trainer::Legacy legacy;
  StateTaker taker;
  std::future<dist::Newcomer::Outcome> outcome;
};

/// A run whose leader has a door.
class GivenState : public testing::Test {
 protected:
  GivenState() {
    dist::Endpoint endpoint{"127.0.0.1", 0};
    (void)dist::listen_at(endpoint);
    address_ = dist::to_string(endpoint);
    door_ = std::make_unique<dist::Door>(dist::DoorOptions{.address = address_, .terms = {1, 9}});
  }

  /// Calls `take` with each part that comes.
  void come(Process& process, const std::function<void(const std::string&)>& take) {
    const int before = door_->ready();
    process.outcome = std::async(std::launch::async, [this, take] {
      dist::Newcomer newcomer({.address = address_});
      return newcomer.wait(
          "", {}, [](int64_t, int64_t) {}, take);
    });
    ASSERT_TRUE(comes_true([&] { return door_->ready() == before + 1; }));
  }
  void come(Process& process) {
    come(process, [&](const std::string& part) { process.taker.take(part); });
  }
  StateGiver giver(Trainer& trainer, int most = 9) {
    return {trainer, *door_, *live_state(trainer.task().model(), trainer.optimizer()), most};
  }
  /// Trains until the processes can be called, or not; returns the number of steps that took.
  int train_until(Trainer& trainer, StateGiver& giver, Standing wanted) {
    for (int steps = 1; steps < 20'000; ++steps) {
      const Standing standing = giver.add(trainer.step());
      if (standing == wanted) return steps;
      EXPECT_EQ(standing, Standing::kUnderWay);
      if (standing != Standing::kUnderWay) break;
    }
    ADD_FAILURE();
    return 0;
  }
  void call(std::vector<Process*> processes) {
    EXPECT_EQ(door_->call(9, 1, {}).size(), processes.size());
    for (Process* each : processes) EXPECT_TRUE(each->outcome.get().call);
  }
  /// Expects that the process trains on as the run does.
  void expect_same(const config::RunConfig& config, Trainer& trainer, Process& process,
                   const std::string& what) {
    ASSERT_EQ(process.taker.steps(), trainer.steps_done()) << what;
    ASSERT_TRUE(process.taker.last()) << what;
    EXPECT_EQ(process.taker.last()->step + 1, trainer.steps_done()) << what;
    Trainer joined = Trainer::create(config, process.legacy, nullptr);
    EXPECT_EQ(joined.position(), trainer.position()) << what;
    EXPECT_EQ(joined.spikes().memory(), trainer.spikes().memory()) << what;
    EXPECT_TRUE(state_bytes(joined) == state_bytes(trainer)) << what;
    for (int i = 0; i < 2; ++i) {
      const StepResult step = trainer.step(), same = joined.step();
      EXPECT_EQ(same.loss, step.loss) << what;
      EXPECT_EQ(same.learning_rate, step.learning_rate) << what;
      EXPECT_EQ(same.loss_scale, step.loss_scale) << what;
    }
    EXPECT_TRUE(state_bytes(joined) == state_bytes(trainer)) << what;
    const auto values_of = [](Trainer& each) {
      std::string bytes;
      for (const nn::NamedParameter& buffer : each.task().model().named_buffers()) {
        bytes.append(static_cast<const char*>(buffer.tensor.data()), buffer.tensor.nbytes());
      }
      return bytes;
    };
    EXPECT_TRUE(values_of(joined) == values_of(trainer)) << what;
  }

  std::string address_;
  std::unique_ptr<dist::Door> door_;
};

TEST_F(GivenState, HasTheBitsOfTheRunThatTrainedMeanwhile) {
  for (const char* more : bitwise_runs_and(
           {"optimizer { muon {} }", "optimizer { adafactor {} }", "optimizer { lion {} }",
            "train { weight_average { decay: 0.9 } }", "precision: F16_MIXED",
            "train { loss_spike { action: SKIP z: 0.1 window: 2 } }",
            "model { freeze: \"*attn*\" }"})) {
    const TemporaryDirectory folder;
    const config::RunConfig config =
        layered_run(folder, std::string(more) + " reproducibility: BITWISE");
    Trainer trainer = Trainer::create(config);
    for (int i = 0; i < 2; ++i) (void)trainer.step();
    Process process(config);
    come(process);
    StateGiver giver = this->giver(trainer);
    train_until(trainer, giver, Standing::kWhole);
    call({&process});
    expect_same(config, trainer, process, more);
  }
}

TEST_F(GivenState, KnowsWhereTheRunEndsEarly) {
  const TemporaryDirectory folder;
  const config::RunConfig config = layered_run(
      folder, "schedule { kind: WSD } train { steps: 100000 } reproducibility: BITWISE");
  Trainer trainer = Trainer::create(config);
  Process process(config);
  come(process);
  StateGiver giver = this->giver(trainer);
  trainer.end_early({9, 8});
  train_until(trainer, giver, Standing::kWhole);
  call({&process});
  EXPECT_EQ(process.legacy.early_end, (ScheduleEnd{9, 8}));
  expect_same(config, trainer, process, "with an early end");
}

TEST_F(GivenState, HasTheRunningStatisticsOfTheRun) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(
      folder, tiny_resnet(folder) + "train { micro_batch_size: 1 } reproducibility: BITWISE");
  Trainer trainer = Trainer::create(config);
  Process process(config);
  come(process);
  StateGiver giver = this->giver(trainer);
  train_until(trainer, giver, Standing::kWhole);
  call({&process});
  expect_same(config, trainer, process, "running statistics");
}

TEST_F(GivenState, IsThatOfSeveralRanksStep) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      layered_run(folder, "train { micro_batch_size: 1 leaves: 8 } reproducibility: BITWISE");
  Process process(config);
  come(process);
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    Trainer trainer =
        Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
    std::optional<StateGiver> giver;
    if (group.rank() == 0)
      giver.emplace(trainer, *door_, *live_state(trainer.task().model(), trainer.optimizer()), 1);
    const Tensor goes_on = full({1}, 1, {DType::kF64, kCPU});
    while (*goes_on.data<double>() != 0) {
      const StepResult step = trainer.step();
      if (giver && giver->add(step) == Standing::kWhole) goes_on.fill_(0);
      group.broadcast(goes_on, 0).wait();
    }
    if (group.rank() != 0) return;
    call({&process});
    EXPECT_EQ(process.taker.steps(), trainer.steps_done());
    Trainer joined = Trainer::create(config, process.legacy, nullptr);
    EXPECT_TRUE(state_bytes(joined) == state_bytes(trainer));
  }));
}

TEST_F(GivenState, IsCopiedAQuarterAtATime) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder);
  Trainer trainer = Trainer::create(config);
  Process process(config);
  come(process);
  const LiveState state = *live_state(trainer.task().model(), trainer.optimizer());
  size_t largest = 0;
  for (const StateUnit& unit : state.units) largest = std::max(largest, unit.bytes());
  StateGiver giver = this->giver(trainer);
  EXPECT_GE(train_until(trainer, giver, Standing::kWhole), 4);
  EXPECT_LE(giver.most_copied(), std::max(largest, state.bytes() / 4));
  call({&process});
}

TEST_F(GivenState, MayBeTakenBySeveralProcesses) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "reproducibility: BITWISE");
  Trainer trainer = Trainer::create(config);
  Process first(config), second(config);
  come(first);
  come(second);
  StateGiver giver = this->giver(trainer);
  EXPECT_EQ(giver.processes(), 2);
  train_until(trainer, giver, Standing::kWhole);
  call({&first, &second});
  EXPECT_EQ(second.taker.steps(), trainer.steps_done());
  Trainer joined = Trainer::create(config, second.legacy, nullptr);
  EXPECT_TRUE(state_bytes(joined) == state_bytes(trainer));
  expect_same(config, trainer, first, "the first");
}

TEST_F(GivenState, IsNotWaitedForByAProcessThatHasEnded) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder);
  Trainer trainer = Trainer::create(config);
  Process process(config);
  struct Ended {};
  come(process, [](const std::string&) { throw Ended(); });
  StateGiver giver = this->giver(trainer);
  EXPECT_THROW((void)process.outcome.get(), Ended);
  EXPECT_TRUE(comes_true([&] { return giver.add(trainer.step()) == Standing::kNobody; }));
}

TEST_F(GivenState, BeginsAnewAfterARollback) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "reproducibility: BITWISE");
  Trainer trainer = Trainer::create(config);
  (void)trainer.step();
  Process process(config);
  come(process);
  {
    StateGiver giver = this->giver(trainer);
    train_until(trainer, giver, Standing::kWhole);
    const Position after = trainer.position();
    trainer.set_position({after.step - 2, after.batch});
    EXPECT_EQ(giver.add(trainer.step()), Standing::kNobody);
  }
  ASSERT_TRUE(comes_true([&] { return door_->ready() == 1; }));
  StateGiver giver = this->giver(trainer);
  train_until(trainer, giver, Standing::kWhole);
  call({&process});
  expect_same(config, trainer, process, "the second time");
}

TEST_F(GivenState, IsTooSlowWhereTheGradientsOfManyStepsWait) {
  const TemporaryDirectory folder;
  config::RunConfig config;
  config::Origins origins;
  config::merge_text(config, origins,
                     "model { mlp { inputs: 16 hidden_widths: [1024, 1024] classes: 4 } }" +
                         table_data(folder) + "train { steps: 1000 batch_size: 1 }",
                     "run.txtpb");
  config::resolve(config, origins);
  Trainer trainer = Trainer::create(config);
  Process process(config);
  std::promise<void> goes_on;
  come(process, [gate = goes_on.get_future().share()](const std::string&) { gate.wait(); });
  {
    StateGiver giver = this->giver(trainer);
    EXPECT_LT(train_until(trainer, giver, Standing::kTooSlow), 100);
  }
  EXPECT_EQ(door_->given().processes, 0);
  goes_on.set_value();
  ASSERT_TRUE(comes_true([&] { return door_->ready() == 1; }));
  call({&process});
}

TEST_F(GivenState, RefusesPartsThatDoNotFitTheModel) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder);
  Process process(config);
  using Kind = StateRecord::Kind;
  const auto expect_refused = [&](const StateRecord& record, const char* what) {
    StateWriter writer;
    writer.add(record);
    expect_error<DataError>([&] { process.taker.take(writer.take().front()); }, what);
  };
  expect_refused({.kind = Kind::kUnit, .number = 10'000}, "unit 10000 of a state that has");
  expect_refused({.kind = Kind::kValues, .number = 0, .tensor = 3}, "tensor 3 of a state");
  expect_refused({.kind = Kind::kBuffer, .number = 7}, "buffer 7 of a state");
  expect_refused({.kind = Kind::kGradient, .number = 10'000}, "gradient 10000 of a state");
  expect_refused({.kind = Kind::kValues, .offset = uint64_t{1} << 40, .bytes = "1234"},
                 "4 bytes at 1099511627776 for a tensor of");
  expect_refused({.kind = Kind::kValues, .bytes = "123"}, "3 bytes at 0 for a tensor of");
  expect_refused({.kind = static_cast<Kind>(77)}, "a record of kind 77");
  expect_refused({.kind = Kind::kStep, .bytes = "12345678"}, "ends too early");
  expect_error<DataError>([&] { process.taker.take("\1ab"); }, "ends too early");
  EXPECT_EQ(process.taker.steps(), -1);
}

}  // namespace
}  // namespace lockstep::train

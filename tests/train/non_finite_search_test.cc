// Which parameter, rank and micro-batch the search blames for a loss or gradient that is not
// finite.

#include "train/non_finite_search.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "tests/data/table_file.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

/// Adds change(model, ...) to the loss of each micro-batch, unless it is undefined.
class ChangedTask final : public ForwardingTask {
 public:
  using Change = std::function<Tensor(nn::Module& model, int64_t batch, int64_t first)>;
  ChangedTask(std::unique_ptr<Task> task, Change change)
      : ForwardingTask(std::move(task)), change_(std::move(change)) {}

  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    const Tensor more = change_(model(), batch, first);
    if (more.defined()) loss.sum = loss.sum + more;
    return loss;
  }

 private:
  Change change_;
};

Tensor parameter(nn::Module& model, const std::string& name) {
  for (const nn::NamedParameter& each : model.named_parameters()) {
    if (each.name == name) return each.tensor;
  }
  throw InternalError("no parameter " + name);
}

/// A loss of 0 whose gradient is NaN for the first `count` elements.
Tensor nan_gradient(const Tensor& of, int64_t count) {
  return sum(sqrt(slice(of.reshape({of.numel()}), 0, 0, count) * 0));
}

/// Runs one step and returns each rank's description of its fault. Checks that all are equal.
std::vector<std::string> first_step(
    const config::RunConfig& config, int size,
    const std::function<Tensor(int rank, nn::Module&, int64_t first)>& change,
    const std::function<void(int rank, nn::Module&)>& prepare = {}) {
  std::vector<std::string> texts(static_cast<size_t>(size));
  rethrow_first(dist::run_thread_ranks(size, [&](dist::ProcessGroup& group) {
    const int rank = group.rank();
    Trainer trainer = Trainer::create(
        config,
        std::make_unique<ChangedTask>(build_task(config, share_of_step(config.train(), &group)),
                                      [&, rank](nn::Module& model, int64_t, int64_t first) {
                                        return change ? change(rank, model, first) : Tensor();
                                      }),
        &group);
    if (prepare) prepare(rank, trainer.task().model());
    const StepResult result = trainer.step();
    EXPECT_EQ(result.outcome.finite, result.non_finite.empty());
    texts[static_cast<size_t>(rank)] = result.non_finite;
  }));
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]) << "ranks are told the same";
  return texts;
}

/// A config with six micro-batches of two samples.
config::RunConfig six(const TemporaryDirectory& folder, const std::string& more = "") {
  return tiny_run(folder, "train { batch_size: 12 micro_batch_size: 2 } " + more);
}

TEST(NonFiniteSearch, NamesTheGradientTheRankAndTheMicroBatch) {
  const TemporaryDirectory folder;
  const config::RunConfig config = six(folder);
  const auto poison = [](int, nn::Module& model, int64_t first) {
    return first == 8 ? nan_gradient(parameter(model, "h.1.mlp.c_fc.weight"), 17) : Tensor();
  };
  const std::string what = "gradient of h.1.mlp.c_fc.weight has 17 NaN";
  EXPECT_EQ(first_step(config, 1, poison)[0], what + " (micro-batch 5 of 6)");
  EXPECT_EQ(first_step(config, 2, poison)[0], what + " on rank 1 (micro-batch 5 of 6)");
  EXPECT_EQ(first_step(config, 3, poison)[0], what + " on rank 2 (micro-batch 5 of 6)");
}

TEST(NonFiniteSearch, OfSeveralGradientsNamesTheOneBackwardComesToFirst) {
  const TemporaryDirectory folder;
  const auto poison = [](int rank, nn::Module& model, int64_t first) {
    if (rank != 0 || first != 0) return Tensor();
    return nan_gradient(parameter(model, "h.0.ln_1.weight"), 2) +
           nan_gradient(parameter(model, "h.1.ln_2.bias"), 1);
  };
  EXPECT_EQ(first_step(six(folder), 2, poison)[0],
            "gradient of h.1.ln_2.bias has 1 NaN on rank 0 (micro-batch 1 of 6, in which 1 other "
            "gradient is not finite either)");
}

TEST(NonFiniteSearch, NamesTheLossOfEachRankThatHasABadOne) {
  const TemporaryDirectory folder;
  const auto poison = [](int rank, nn::Module& model, int64_t) {
    const double bad = rank == 1 ? std::numeric_limits<double>::quiet_NaN()
                                 : std::numeric_limits<double>::infinity();
    return rank == 0 ? Tensor() : sum(parameter(model, "wte.weight") * 0) + bad;
  };
  EXPECT_EQ(first_step(six(folder), 3, poison)[0],
            "loss is NaN on rank 1 (micro-batch 3 of 6); loss is infinite on rank 2 (micro-batch 5 "
            "of 6)");
}

TEST(NonFiniteSearch, NamesAParameterThatIsNotFiniteItself) {
  const TemporaryDirectory folder;
  const auto break_weight = [](int rank, nn::Module& model) {
    if (rank != 1) return;
    auto* const values = parameter(model, "h.0.attn.c_proj.bias").data<float>();
    values[2] = std::numeric_limits<float>::quiet_NaN();
    values[3] = values[4] = std::numeric_limits<float>::infinity();
  };
  EXPECT_EQ(first_step(six(folder), 3, {}, break_weight)[0],
            "parameter h.0.attn.c_proj.bias itself holds 1 NaN and 2 infinities on rank 1");
}

TEST(NonFiniteSearch, ManyRanksAreCounted) {
  const TemporaryDirectory folder;
  const auto poison = [](int, nn::Module& model, int64_t) {
    return nan_gradient(parameter(model, "wpe.weight"), 1);
  };
  const std::string text = first_step(six(folder), 6, poison)[0];
  EXPECT_TRUE(says(text, "on rank 2")) << text;
  EXPECT_FALSE(says(text, "on rank 3")) << text;
  EXPECT_TRUE(text.ends_with("; and something on 3 ranks more")) << text;
}

TEST(NonFiniteSearch, SaysWhereOnlyTheSumOverflows) {
  const TemporaryDirectory folder;
  const auto poison = [](int, nn::Module& model, int64_t) {
    return sum(parameter(model, "h.0.ln_1.bias") * 1e38);  // the bias is 0
  };
  for (const int ranks : {1, 2, 3}) {
    const std::string text = first_step(six(folder), ranks, poison)[0];
    EXPECT_TRUE(says(text, "only their sum overflows, with elements of up to 6.0e+38")) << text;
  }
}

TEST(NonFiniteSearch, SaysThatAFaultDoesNotComeBack) {
  const TemporaryDirectory folder;
  std::atomic<bool> once = true;
  const auto poison = [&](int rank, nn::Module& model, int64_t) {
    const bool bad = rank == 1 && once.exchange(false);
    return bad ? nan_gradient(parameter(model, "wpe.weight"), 1) : Tensor();
  };
  EXPECT_TRUE(says(first_step(six(folder), 2, poison)[0], "every loss and gradient is finite"));
}

TEST(NonFiniteSearch, ARankThatCannotComputeTheStepAgainSaysSo) {
  const TemporaryDirectory folder;
  std::atomic<int> passes = 0;
  const auto poison = [&](int rank, nn::Module& model, int64_t) {
    if (rank != 1) return Tensor();
    if (++passes > 3) throw OutOfMemoryError("[cpu] no memory is left");
    return nan_gradient(parameter(model, "wpe.weight"), 1);
  };
  EXPECT_EQ(first_step(six(folder), 2, poison)[0],
            "the step could not be computed again on rank 1: [cpu] no memory is left");
}

TEST(NonFiniteSearch, AnOverflowUnderTheLossScaleIsNotLookedFor) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(six(folder, "precision: F16_MIXED"));
  trainer.scaler().load_state({.scale = 0x1p40});
  const StepResult result = trainer.step();
  EXPECT_TRUE(result.outcome.overflowed);
  EXPECT_EQ(result.non_finite, "");
}

/// Trains from the second batch on. With `poisoned`, the first step is run and refused; otherwise
/// it is skipped.
std::vector<Trace> from_the_second(const config::RunConfig& config, int size, bool poisoned) {
  std::vector<Trace> traces(static_cast<size_t>(size));
  rethrow_first(dist::run_thread_ranks(size, [&](dist::ProcessGroup& group) {
    const StreamGuard own_stream(get_stream_from_pool(parse_device(config.device())));
    const bool bad_rank = group.rank() == size - 1;
    Trainer trainer = Trainer::create(
        config,
        std::make_unique<ChangedTask>(build_task(config, share_of_step(config.train(), &group)),
                                      [bad_rank](nn::Module& model, int64_t batch, int64_t) {
                                        const bool bad = bad_rank && batch == 0;
                                        return bad ? nan_gradient(model.parameters()[0], 1)
                                                   : Tensor();
                                      }),
        &group);
    if (poisoned) {
      EXPECT_FALSE(trainer.step().outcome.finite);
    } else {
      trainer.set_position({1, 1});
    }
    traces[static_cast<size_t>(group.rank())] = trace(trainer, 3);
  }));
  return traces;
}

TEST(NonFiniteSearch, LeavesTheStepsAfterItAsTheyWere) {
  const TemporaryDirectory folder;
  for (const char* device : {"cpu", "host:0"}) {
    const config::RunConfig config = six(folder, fmt::format("device: \"{}\"", device));
    for (const int ranks : {1, 2}) {
      EXPECT_EQ(from_the_second(config, ranks, true), from_the_second(config, ranks, false))
          << device << ", ranks: " << ranks;
    }
  }
}

TEST(NonFiniteSearch, LeavesRunningStatisticsAndTheGeneratorAsTheStepLeftThem) {
  const TemporaryDirectory folder;
  put_table(folder / "table.csv", 200, 16, 4);
  const config::RunConfig config = tiny_run(
      folder,
      fmt::format(
          R"(model {{ resnet {{ channels: 1 height: 4 width: 4 classes: 4 base_width: 4 blocks: [1] }} }}
             data {{ table {{ path: "{}" scale: 0.1 held_out_rows: 50 }} order: SHUFFLED }}
             train {{ batch_size: 8 micro_batch_size: 2 }})",
          (folder / "table.csv").string()));
  const auto state_after_a_step = [&](int size, bool poisoned) {
    std::vector<std::string> states(static_cast<size_t>(size));
    rethrow_first(dist::run_thread_ranks(size, [&](dist::ProcessGroup& group) {
      const bool bad = poisoned && group.rank() == 0;
      Trainer trainer = Trainer::create(
          config,
          std::make_unique<ChangedTask>(build_task(config, share_of_step(config.train(), &group)),
                                        [bad](nn::Module& model, int64_t, int64_t) {
                                          return bad ? nan_gradient(model.parameters()[0], 1)
                                                     : Tensor();
                                        }),
          &group);
      EXPECT_EQ(trainer.step().outcome.finite, !poisoned);
      std::string& state = states[static_cast<size_t>(group.rank())];
      for (const nn::NamedParameter& buffer : trainer.task().model().named_buffers()) {
        state.append(static_cast<const char*>(buffer.tensor.data()), buffer.tensor.nbytes());
      }
      const RandomKey next = default_generator().state();
      state += fmt::format(" {} {} {}", next.step, next.micro_batch, next.call);
    }));
    return states;
  };
  for (const int ranks : {1, 2}) {
    EXPECT_TRUE(state_after_a_step(ranks, true) == state_after_a_step(ranks, false))
        << "ranks: " << ranks;
  }
}

}  // namespace
}  // namespace lockstep::train

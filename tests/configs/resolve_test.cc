#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/load.h"
#include "configs/origins.h"
#include "configs/run.pb.h"
#include "core/tensor/device.h"
#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

/// Error in the smallest config after the assignments, without its place.
std::string problem(const std::vector<std::string>& assignments) {
  try {
    smallest_with(assignments);
  } catch (const SourceError& e) {
    return e.problem();
  }
  return "no error";
}

constexpr const char* kLlama = "model.llama.context_length=8";

std::string llama_problem(std::vector<std::string> assignments) {
  assignments.insert(assignments.begin(), {kLlama, "model.llama.layers=1", "model.llama.heads=4",
                                           "model.llama.width=64"});
  return problem(assignments);
}

TEST(Resolve, FillsTheDocumentedDefaults) {
  const RunConfig config = load_text(kSmallest, "dir/first try.txtpb");
  EXPECT_EQ(config.name(), "first_try");
  EXPECT_EQ(config.seed(), 1337U);
  EXPECT_EQ(config.device(), "cpu");
  EXPECT_EQ(config.threads(), 0);
  EXPECT_EQ(config.precision(), F32);
  EXPECT_EQ(config.model().gpt2().vocab_size(), 256);
  EXPECT_EQ(config.model().gpt2().layer_norm_epsilon(), 1e-5);
  EXPECT_EQ(config.optimizer().learning_rate(), 3e-4);
  EXPECT_EQ(config.optimizer().weight_decay(), 0.1);
  EXPECT_EQ(config.optimizer().clip_grad_norm(), 1);
  ASSERT_TRUE(config.optimizer().has_adamw());
  EXPECT_EQ(config.optimizer().adamw().beta1(), 0.9);
  EXPECT_EQ(config.optimizer().adamw().beta2(), 0.95);
  EXPECT_EQ(config.optimizer().adamw().epsilon(), 1e-8);
  EXPECT_EQ(config.schedule().kind(), ScheduleConfig::COSINE);
  EXPECT_EQ(config.schedule().min_learning_rate_ratio(), 0.1);
  EXPECT_EQ(config.train().leaves(), 1);
}

TEST(Resolve, BatchNormOverRanksDoesNotGoWithBitwise) {
  EXPECT_FALSE(load_text(kSmallest, "a.txtpb").parallel().sync_batch_norm());
  EXPECT_TRUE(smallest_with({"parallel.sync_batch_norm=true"}).parallel().sync_batch_norm());
  EXPECT_TRUE(problem({"parallel.sync_batch_norm=true", "reproducibility=BITWISE",
                       "train.batch_size=8", "train.micro_batch_size=1"})
                  .starts_with("parallel.sync_batch_norm does not go with reproducibility: "
                               "BITWISE: the samples that are normalised together"));
}

TEST(Resolve, LeavesByTheSpeedOfRanksAreForBitwiseAndStrategiesThatDoNotGatherInEachPass) {
  EXPECT_EQ(load_text(kSmallest, "a.txtpb").parallel().balance(), ParallelConfig::EVEN);
  const auto balanced = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"parallel.balance=SPEED", "train.batch_size=8"});
    return more;
  };
  for (const char* strategy : {"DDP", "SHARD_OPTIMIZER"}) {
    const RunConfig config = smallest_with(
        balanced({"reproducibility=BITWISE", std::string("parallel.strategy=") + strategy}));
    EXPECT_EQ(config.parallel().balance(), ParallelConfig::SPEED);
  }
  EXPECT_TRUE(problem(balanced({}))
                  .starts_with("parallel.balance: SPEED needs reproducibility: BITWISE: otherwise "
                               "the rank that computes a "
                               "leaf changes bits"));
  for (const char* strategy : {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD"}) {
    EXPECT_TRUE(
        problem(balanced({"reproducibility=BITWISE", std::string("parallel.strategy=") + strategy}))
            .starts_with(std::string("parallel.balance: SPEED does not go with "
                                     "parallel.strategy: ") +
                         strategy))
        << strategy;
  }
  EXPECT_TRUE(problem(balanced({"reproducibility=BITWISE", "train.leaves=1"}))
                  .starts_with("parallel.balance: SPEED moves leaves between ranks"));
}

TEST(Resolve, TheLimitOfSlowRanksIsAboveOneOrNone) {
  EXPECT_EQ(load_text(kSmallest, "a.txtpb").parallel().leave_out_slower(), 0);
  EXPECT_EQ(smallest_with({"parallel.leave_out_slower=1.5"}).parallel().leave_out_slower(), 1.5);
  EXPECT_TRUE(problem({"parallel.leave_out_slower=1"})
                  .starts_with("parallel.leave_out_slower is 1: expected more than 1"));
}

TEST(Resolve, BatchNormOverRanksDoesNotGoWithAudits) {
  EXPECT_TRUE(problem({"parallel.sync_batch_norm=true", "audit.every_steps=10"})
                  .starts_with("audit.every_steps does not go with parallel.sync_batch_norm"));
  EXPECT_EQ(smallest_with({"audit.every_steps=10"}).audit().every_steps(), 10);
}

TEST(Resolve, DerivesDefaultsFromOtherFields) {
  const RunConfig config = smallest_with(
      {kLlama, "model.llama.layers=1", "model.llama.heads=4", "model.llama.width=128"});
  EXPECT_EQ(config.model().llama().kv_heads(), 4);
  EXPECT_EQ(config.model().llama().hidden_width(), 384);  // 341.3 rounded up to 6 * 64
  EXPECT_EQ(config.train().micro_batch_size(), 4);
  EXPECT_EQ(config.schedule().decay_steps(), 3);
  EXPECT_EQ(
      smallest_with({"train.steps=1000", "schedule.decay_steps=50"}).schedule().cooldown_steps(),
      10);
}

TEST(Resolve, HiddenWidthStaysWhereEightThirdsIsAMultipleOf64) {
  const RunConfig config = smallest_with(
      {kLlama, "model.llama.layers=1", "model.llama.heads=4", "model.llama.width=192"});
  EXPECT_EQ(config.model().llama().hidden_width(), 512);
}

TEST(Resolve, RequiredFieldsAreNamed) {
  EXPECT_EQ(problem({"model.llama={}"}),
            "model.llama.context_length is required: expected context_length: an integer from 1 to "
            "2^20. Set it in the file or with --set.");
  EXPECT_EQ(problem({"data.text={}"}),
            "data.text.path is required: expected path: text in quotes. Set "
            "it in the file or with --set.");
  EXPECT_THROW(load_text("model {} data { random {} } train { steps: 1 batch_size: 1 }"),
               SourceError);
}

TEST(Resolve, MissingChoiceNamesTheMembersAtTheMessage) {
  try {
    load_text("seed: 1\nmodel {}", "a");
    FAIL();
  } catch (const SourceError& e) {
    EXPECT_STREQ(
        e.what(),
        "a:2:1: model needs one architecture: expected gpt2 {} or llama {} or resnet {} or "
        "mlp {}.");
  }
}

TEST(Resolve, RangesAreChecked) {
  EXPECT_EQ(problem({"train.steps=0"}), "train.steps is 0: expected an integer from 1 to 10^12.");
  EXPECT_EQ(problem({"train.batch_size=-4"}),
            "train.batch_size is -4: expected an integer from 1 to 2^24.");
  EXPECT_EQ(problem({"model.gpt2.context_length=0"}),
            "model.gpt2.context_length is 0: expected an integer from 1 to 2^20.");
  EXPECT_EQ(problem({"model.gpt2.layers=1000000000"}),
            "model.gpt2.layers is 1000000000: expected an integer from 1 to 10000.");
  EXPECT_EQ(problem({"model.gpt2.dropout=1"}),
            "model.gpt2.dropout is 1: expected a number of at least 0 and below 1.");
  EXPECT_EQ(problem({"model.gpt2.dropout=0.999"}), "no error");
  EXPECT_EQ(problem({"optimizer.learning_rate=0"}),
            "optimizer.learning_rate is 0: expected a number above 0 and at most 1000.");
  EXPECT_EQ(problem({"optimizer.learning_rate=nan"}),
            "optimizer.learning_rate is nan: expected a number above 0 and at most 1000.");
  EXPECT_EQ(problem({"optimizer.weight_decay=inf"}),
            "optimizer.weight_decay is inf: expected a number from 0 to 1000.");
  EXPECT_EQ(problem({"optimizer.weight_decay=-inf"}),
            "optimizer.weight_decay is -inf: expected a number from 0 to 1000.");
  EXPECT_EQ(problem({"data.text.path=a", "data.text.held_out_bytes=-1"}),
            "data.text.held_out_bytes is -1: expected an integer from 0 to 2^50.");
}

TEST(Resolve, RangeErrorNamesThePlaceThatSetTheValue) {
  try {
    load_text(std::string(kSmallest) + "optimizer {\n  learning_rate: -1\n}\n", "a");
    FAIL();
  } catch (const SourceError& e) {
    EXPECT_EQ(e.where(), "a:5:3");
  }
}

TEST(Resolve, ADeviceMayBeABackendsByTheNameThatItGaveItself) {
  EXPECT_EQ(problem({"device=cellar"}),
            "device is \"cellar\": expected \"cpu\", \"host:N\", \"cuda\" or \"cuda:N\".");
  name_device_type(DeviceType::kPrivate3, "cellar");
  for (const char* device : {"cellar", "cellar:0", "cellar:15", "cpu", "cuda:1"}) {
    EXPECT_EQ(problem({std::string("device=") + device}), "no error");
  }
  for (const char* device : {"cellar:", "cellar:x", "cellar:16", "cellar1", "private3:0"}) {
    EXPECT_EQ(
        problem({std::string("device=") + device}),
        fmt::format("device is \"{}\": expected \"cpu\", \"host:N\", \"cuda\" or \"cuda:N\" or "
                    "\"cellar\" or \"cellar:N\".",
                    device));
  }
  name_device_type(DeviceType::kPrivate3, "");
  EXPECT_NE(problem({"device=cellar"}), "no error");
}

TEST(Resolve, OnlyWhatIsThereCanBeChosen) {
  for (const char* device :
       {"gpu", "CPU", "host", "host:", "host:x", "host:100", "cuda:", "cuda:-1"}) {
    EXPECT_EQ(problem({std::string("device=") + device}),
              fmt::format("device is \"{}\": expected \"cpu\", \"host:N\", \"cuda\" or "
                          "\"cuda:N\".",
                          device));
  }
  EXPECT_EQ(problem({"device=cuda"}), "no error");
  EXPECT_EQ(problem({"device=cuda:1"}), "no error");
  EXPECT_EQ(problem({"device=host:3"}), "no error");
  EXPECT_EQ(problem({"precision=PRECISION_UNSPECIFIED"}),
            "precision is PRECISION_UNSPECIFIED: expected one of F32, BF16_MIXED, F16_MIXED.");
  EXPECT_EQ(problem({"precision=7"}),
            "precision is 7: expected one of F32, BF16_MIXED, F16_MIXED.");
}

TEST(Resolve, SizesMustDivide) {
  EXPECT_EQ(problem({"model.gpt2.heads=3"}),
            "model.gpt2.heads does not divide the width: expected a divisor of 4, got 3.");
  EXPECT_EQ(llama_problem({"model.llama.kv_heads=3"}),
            "model.llama.kv_heads does not divide the heads: expected a divisor of 4, got 3.");
  EXPECT_EQ(llama_problem({"model.llama.width=60"}),
            "model.llama: rotary positions turn pairs, so width / heads must be even: got 60 / 4 = "
            "15.");
  EXPECT_EQ(problem({"train.micro_batch_size=3"}),
            "train.micro_batch_size does not divide the batch: expected a divisor of 4, got 3.");
  EXPECT_EQ(problem({"train.micro_batch_size=8"}),
            "train.micro_batch_size does not divide the batch: expected a divisor of 4, got 8.");
}

TEST(Resolve, LeavesAreAPowerOfTwoThatDividesTheMicroBatches) {
  EXPECT_EQ(problem({"train.leaves=2", "train.micro_batch_size=1"}), "no error");
  EXPECT_EQ(problem({"train.leaves=3", "train.micro_batch_size=1"}),
            "train.leaves is 3: expected a power of two from 1 to 4096.");
  EXPECT_EQ(
      problem({"train.leaves=4", "train.micro_batch_size=2"}),
      "train.leaves does not divide the number of micro-batches (batch_size / micro_batch_size = "
      "4 / 2 = 2): got 4. Choose smaller micro-batches or fewer leaves.");
}

TEST(Resolve, BitwiseChoosesTheLargestMicroBatchThatItsLeavesAllow) {
  const auto size = [](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"reproducibility=BITWISE", "train.batch_size=48"};
    all.insert(all.end(), more.begin(), more.end());
    return smallest_with(all).train().micro_batch_size();
  };
  EXPECT_EQ(size({}), 6) << "8 leaves";
  EXPECT_EQ(size({"train.leaves=2"}), 24);
  EXPECT_EQ(size({"train.leaves=1"}), 48);
  EXPECT_EQ(size({"train.micro_batch_size=3"}), 3);
  EXPECT_EQ(
      problem({"reproducibility=BITWISE", "train.batch_size=48", "train.micro_batch_size=48"}),
      "train.leaves does not divide the number of micro-batches (batch_size / "
      "micro_batch_size = 48 / 48 = 1): got 8. Choose smaller micro-batches or fewer leaves.");
  EXPECT_EQ(problem({"reproducibility=BITWISE", "train.batch_size=12"}),
            "train.leaves does not divide the number of micro-batches (batch_size / "
            "micro_batch_size = 12 / 1 = 12): got 8. Choose a batch_size that it divides or fewer "
            "leaves.");
}

TEST(Resolve, AChosenMicroBatchSaysWhyAndIsNoPlaceOfAnError) {
  RunConfig config;
  Origins origins;
  merge_text(config, origins, std::string(kSmallest) + "reproducibility: BITWISE", "a");
  set_value(config, origins, "train.batch_size=16");
  resolve(config, origins);
  EXPECT_EQ(config.train().micro_batch_size(), 2);
  EXPECT_EQ(origins.at("train.micro_batch_size"), "chosen: 8 leaves");
  try {
    fail(origins, "train.micro_batch_size", "problem");
  } catch (const SourceError& e) {
    EXPECT_FALSE(e.where().starts_with("chosen")) << e.where();
  }
  const RunConfig once = config;
  resolve(config, origins);
  EXPECT_EQ(to_text(config), to_text(once));
  EXPECT_EQ(origins.at("train.micro_batch_size"), "chosen: 8 leaves");
}

TEST(Resolve, TextNeedsAnIdForEveryByte) {
  EXPECT_EQ(problem({"model.gpt2.vocab_size=255"}), "no error");
  EXPECT_EQ(problem({"data.text.path=a", "model.gpt2.vocab_size=255"}),
            "model.gpt2.vocab_size is 255: text is read as bytes, so expected at least 256.");
  EXPECT_EQ(problem({"data.text.path="}), "data.text.path is empty: expected the path of a file.");
}

TEST(Resolve, NameMustFitAFolder) {
  EXPECT_EQ(problem({"name=run-1.b_2"}), "no error");
  for (const char* name : {"name=", "name=..", "name=a/b", "name=-x", "name=a b"}) {
    EXPECT_NE(problem({name}), "no error") << name;
  }
}

TEST(Resolve, RopeScalingIsNoneUnlessChosen) {
  const std::vector<std::string> llama = {kLlama, "model.llama.layers=1", "model.llama.heads=4",
                                          "model.llama.width=64"};
  EXPECT_TRUE(smallest_with(llama).model().llama().rope_scaling().has_none());
  std::vector<std::string> chosen = llama;
  chosen.push_back("model.llama.rope_scaling.llama3.factor=2");
  const RopeScaling llama3 = smallest_with(chosen).model().llama().rope_scaling();
  EXPECT_EQ(llama3.llama3().factor(), 2);
  EXPECT_EQ(llama3.llama3().high_freq_factor(), 4);
  EXPECT_EQ(llama3.llama3().original_context_length(), 8192);
  chosen = llama;
  chosen.push_back("model.llama.rope_scaling.yarn.factor=4");
  chosen.push_back("model.llama.rope_scaling.yarn.original_context_length=64");
  const RopeScaling yarn = smallest_with(chosen).model().llama().rope_scaling();
  EXPECT_NEAR(yarn.yarn().attention_factor(), 1.1386294361119891, 1e-15);
}

TEST(Resolve, BoundsOfRopeScalingMustBeInOrder) {
  EXPECT_EQ(llama_problem({"model.llama.rope_scaling.linear.factor=2"}), "no error");
  EXPECT_EQ(llama_problem({"model.llama.rope_scaling.llama3.low_freq_factor=4"}),
            "model.llama.rope_scaling.llama3.high_freq_factor is 4: expected more than "
            "low_freq_factor, which is 4.");
  EXPECT_EQ(llama_problem({"model.llama.rope_scaling.yarn.factor=4",
                           "model.llama.rope_scaling.yarn.original_context_length=64",
                           "model.llama.rope_scaling.yarn.beta_fast=0.5"}),
            "model.llama.rope_scaling.yarn.beta_fast is 0.5: expected more than beta_slow, which "
            "is 1.");
}

TEST(Resolve, NesterovNeedsMomentum) {
  EXPECT_EQ(problem({"optimizer.sgd.nesterov=true"}), "no error");
  EXPECT_EQ(
      problem({"optimizer.sgd.nesterov=true", "optimizer.sgd.momentum=0"}),
      "optimizer.sgd.nesterov needs momentum: expected optimizer.sgd.momentum above 0, got 0.");
}

TEST(Resolve, CommunicationHooksHaveTheirDefaultsWhereOneIsChosen) {
  EXPECT_EQ(smallest_with({}).parallel().communication_hook_case(),
            ParallelConfig::COMMUNICATION_HOOK_NOT_SET);
  EXPECT_TRUE(smallest_with({"parallel.bf16_compress={}"}).parallel().has_bf16_compress());
  const PowerSgd power_sgd = smallest_with({"parallel.power_sgd={}"}).parallel().power_sgd();
  EXPECT_EQ(power_sgd.rank(), 4);
  EXPECT_EQ(power_sgd.start_step(), 0);
  EXPECT_EQ(power_sgd.min_compression(), 2);
  EXPECT_EQ(problem({"parallel.power_sgd.rank=0"}),
            "parallel.power_sgd.rank is 0: expected an integer from 1 to 65536.");
}

TEST(Resolve, BitwiseRefusesCommunicationHooksAtTheirPlace) {
  for (const std::string hook : {"bf16_compress", "f16_compress", "power_sgd"}) {
    try {
      load_text(
          "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 4 } }\ndata { random {} }\n"
          "train { steps: 3 batch_size: 8 micro_batch_size: 1 }\n"
          "reproducibility: BITWISE parallel {\n  " +
              hook + " {} }",
          "a");
      FAIL() << hook;
    } catch (const SourceError& e) {
      EXPECT_EQ(e.where(), "a:5:3");
      EXPECT_EQ(e.problem(),
                "parallel." + hook +
                    " cannot be with reproducibility: BITWISE: what it loses of a gradient depends "
                    "on how the gradient is shared out among the ranks, so that their number would "
                    "change bits. Leave one of them out.");
    }
  }
}

TEST(Resolve, LocalSgdRefusesWhatDoesNotGoWithItByName) {
  const std::string local = "parallel.local_sgd.inner_steps=4";
  EXPECT_EQ(problem({local}), "no error");
  for (const auto& [other, named] :
       {std::pair("reproducibility=BITWISE", "reproducibility: BITWISE"),
        std::pair("parallel.strategy=FULL_SHARD", "a parallel.strategy that shards"),
        std::pair("parallel.bf16_compress={}", "a communication hook"),
        std::pair("parallel.sync_batch_norm=true", "parallel.sync_batch_norm"),
        std::pair("checkpoint.memory_every=3", "checkpoint.memory_every"),
        std::pair("audit.every_steps=3", "audit.every_steps"),
        std::pair("optimizer.optimizer_in_backward=true", "optimizer.optimizer_in_backward")}) {
    EXPECT_THAT(problem({local, other, "optimizer.clip_grad_norm=0", "train.leaves=1"}),
                testing::StartsWith(std::string("parallel.local_sgd does not go with ") + named))
        << other;
  }
  EXPECT_EQ(problem({local, "parallel.local_sgd.delay_steps=4"}),
            "parallel.local_sgd.delay_steps is 4: expected less than inner_steps, which is 4.");
  EXPECT_EQ(problem({local, "parallel.local_sgd.fragments=5"}),
            "parallel.local_sgd.fragments is 5: expected at most inner_steps, which is 4.");
  EXPECT_EQ(problem({local, "parallel.local_sgd.bits=16"}),
            "parallel.local_sgd.bits is 16: expected 4, 8 or 32.");
}

TEST(Resolve, PowerSgdNeedsGradientsOfOneScale) {
  EXPECT_EQ(problem({"parallel.power_sgd={}", "precision=F16_MIXED"}),
            "parallel.power_sgd cannot be with precision: F16_MIXED: the errors that it keeps have "
            "the loss scale of the step before, which changes. Use BF16_MIXED, or "
            "parallel.f16_compress.");
  EXPECT_EQ(problem({"parallel.f16_compress={}", "precision=F16_MIXED"}), "no error");
}

TEST(Resolve, DefaultNameIsValidWhateverTheFileIsCalled) {
  const auto name = [](const std::string& file) { return load_text(kSmallest, file).name(); };
  EXPECT_EQ(name("/some/folder/my-run.2.txtpb"), "my-run.2");
  EXPECT_EQ(name("a\nb c.txtpb"), "a_b_c");
  EXPECT_EQ(name(".hidden"), "run.hidden");
  EXPECT_EQ(name("-a.txtpb"), "run-a");
  EXPECT_EQ(name(""), "run");
  const std::string longest = name(std::string(300, 'x') + ".txtpb");
  EXPECT_EQ(longest, std::string(longest.size(), 'x'));
  EXPECT_EQ(name("-" + std::string(300, 'x')).size(), 128u) << "the longest that is allowed";
}

TEST(Resolve, ErrorsBetweenFieldsNameThePlaceOfTheOneThatDoesNotDivide) {
  try {
    load_text(
        "train { batch_size: 4 steps: 1 leaves: 2 }\ndata { random {} }\n"
        "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 4 } }\n",
        "a");
    FAIL();
  } catch (const SourceError& e) {
    EXPECT_EQ(e.where(), "a:1:32");
  }
}

}  // namespace
}  // namespace lockstep::config

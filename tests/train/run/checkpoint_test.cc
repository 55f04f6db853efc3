#include "train/run/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "configs/load.h"
#include "core/base/error.h"
#include "tests/train/tiny_run.h"
#include "train/run/resume.h"
#include "train/weights.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  fs::path save(Trainer& trainer, const config::RunConfig& config) {
    return save_checkpoint(folder_ / "checkpoints", trainer, config::to_text(config));
  }
  /// A checkpoint after each of `steps`.
  void save_at(const config::RunConfig& config, const std::vector<int64_t>& steps) {
    Trainer trainer = Trainer::create(config);
    for (const int64_t step : steps) {
      while (trainer.steps_done() < step) trainer.step();
      save(trainer, config);
    }
  }
  std::vector<int64_t> steps_left() const {
    std::vector<int64_t> steps;
    for (const CheckpointEntry& entry : list_checkpoints(folder_ / "checkpoints")) {
      steps.push_back(entry.step);
    }
    return steps;
  }
  fs::path at(int64_t step) const { return folder_ / fmt::format("checkpoints/step-{:08}", step); }
  /// Flips one bit in the middle of a file.
  static void damage(const fs::path& path) {
    std::string content = file_content(path);
    content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 4);
    put_file(path, content);
  }
  /// Gives the manifest a later version, of which nothing else is known.
  static void put_newer_version(const fs::path& path) {
    put_file(path / "checkpoint.json",
             "{\"format\": \"lockstep checkpoint\", \"format_version\": 3, "
             "\"lockstep_version\": \"9.9\"}");
  }

  TemporaryDirectory folder_;
};

TEST_F(CheckpointTest, ATrainerThatIsRestoredGoesOnWithTheSameBits) {
  for (const std::string rule : {"", "optimizer { sgd { momentum: 0.9 } }",
                                 "optimizer { sgd { momentum: 0 } }", "data { order: SHUFFLED }"}) {
    const config::RunConfig config =
        tiny_run(folder_, rule + "train { micro_batch_size: 2 leaves: 2 }");
    Trainer whole = Trainer::create(config);
    for (int i = 0; i < 3; ++i) whole.step();
    const fs::path path = save(whole, config);
    Trainer resumed = Trainer::create(config);
    restore(resumed, path, verify_checkpoint(path));
    EXPECT_EQ(resumed.position(), whole.position());
    EXPECT_EQ(state_bytes(resumed), state_bytes(whole));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(resumed.step().loss, whole.step().loss);
    EXPECT_EQ(state_bytes(resumed), state_bytes(whole));
  }
}

TEST_F(CheckpointTest, HoldsAFolderThatOtherProgramsOpen) {
  const config::RunConfig config = tiny_run(folder_);
  save_at(config, {1});
  for (const char* name : {"model.safetensors", "config.json", "optimizer.safetensors",
                           "config.txtpb", "checkpoint.json"}) {
    EXPECT_TRUE(fs::exists(at(1) / name)) << name;
  }
  EXPECT_EQ(file_content(at(1) / "config.txtpb"), config::to_text(config));
}

TEST_F(CheckpointTest, DamageInAnyFileIsFoundAndNamed) {
  const config::RunConfig config = tiny_run(folder_);
  save_at(config, {1});
  verify_checkpoint(at(1));
  for (const fs::directory_entry& entry : fs::directory_iterator(at(1))) {
    const std::string whole = file_content(entry.path());
    damage(entry.path());
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(says(message_of<CheckpointError>([&] { verify_checkpoint(at(1)); }), name));
    put_file(entry.path(), whole.substr(0, whole.size() / 2));
    EXPECT_TRUE(says(message_of<CheckpointError>([&] { verify_checkpoint(at(1)); }), name));
    fs::remove(entry.path());
    EXPECT_TRUE(says(message_of<CheckpointError>([&] { verify_checkpoint(at(1)); }), name));
    put_file(entry.path(), whole);
  }
  verify_checkpoint(at(1));
}

TEST_F(CheckpointTest, DamageInATensorNamesTheTensor) {
  save_at(tiny_run(folder_), {1});
  std::string content = file_content(at(1) / "model.safetensors");
  content.back() = static_cast<char>(content.back() ^ 1);
  put_file(at(1) / "model.safetensors", content);
  const std::string message = message_of<CheckpointError>([&] { verify_checkpoint(at(1)); });
  EXPECT_TRUE(says(message, "tensor \"wte.weight\""));  // the last tensor by name
}

TEST_F(CheckpointTest, AnotherOptimizerIsRefusedByName) {
  save_at(tiny_run(folder_), {1});
  Trainer other = Trainer::create(tiny_run(folder_, "optimizer { sgd {} }"));
  const std::string message =
      message_of<CheckpointError>([&] { restore(other, at(1), verify_checkpoint(at(1))); });
  EXPECT_TRUE(says(message, "its optimizer is adamw, the config's sgd"));
}

TEST_F(CheckpointTest, AnotherModelIsRefusedWithItsTensors) {
  save_at(tiny_run(folder_), {1});
  Trainer other = Trainer::create(tiny_run(folder_, "model { gpt2 { layers: 3 } }"));
  const std::string message =
      message_of<CheckpointError>([&] { restore(other, at(1), verify_checkpoint(at(1))); });
  EXPECT_TRUE(says(message, "missing h.2.ln_1.weight"));
}

TEST_F(CheckpointTest, OldOnesAreRemovedAndMilestonesStay) {
  save_at(tiny_run(folder_), {1, 2, 3, 4, 5, 6, 7});
  fs::remove(at(2) / "checkpoint.json");  // as if writing it was interrupted
  remove_old_checkpoints(folder_ / "checkpoints", {.keep_last = 2, .keep_every = 3});
  EXPECT_EQ(steps_left(), (std::vector<int64_t>{3, 6, 7}));
}

TEST_F(CheckpointTest, OneThatIsNotCompleteDoesNotCountAsTheNewest) {
  save_at(tiny_run(folder_), {1, 2});
  fs::remove(at(2) / "checkpoint.json");
  remove_old_checkpoints(folder_ / "checkpoints", {.keep_last = 1});
  EXPECT_EQ(steps_left(), (std::vector<int64_t>{1, 2}));  // no newer whole one makes up for it
}

TEST_F(CheckpointTest, PruningGoesByTheManifestAndNotThroughLinks) {
  save_at(tiny_run(folder_), {1, 2, 3, 4});
  fs::rename(at(4), at(0));  // the name says 0, the manifest 4
  fs::rename(at(1), folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", at(1));
  remove_old_checkpoints(folder_ / "checkpoints", {.keep_last = 1});
  EXPECT_TRUE(fs::exists(at(0) / "checkpoint.json"));
  EXPECT_FALSE(fs::exists(at(2)));
  EXPECT_FALSE(fs::exists(at(3)));
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere/checkpoint.json"));
  EXPECT_TRUE(fs::is_symlink(at(1)));
}

TEST_F(CheckpointTest, PruningLeavesAloneWhatItCannotJudge) {
  save_at(tiny_run(folder_), {1, 2, 3, 4});
  damage(at(1) / "checkpoint.json");
  put_newer_version(at(2));
  put_file(folder_ / "checkpoints/step-00000009", "no folder");
  remove_old_checkpoints(folder_ / "checkpoints", {.keep_last = 1});
  EXPECT_TRUE(fs::exists(at(1)));
  EXPECT_TRUE(fs::exists(at(2)));
  EXPECT_FALSE(fs::exists(at(3)));
  EXPECT_TRUE(fs::exists(at(9)));
}

TEST_F(CheckpointTest, EveryStateIsToldApart) {
  save_at(tiny_run(folder_), {1, 2, 3, 4, 5, 6});
  damage(at(1) / "optimizer.safetensors");
  put_newer_version(at(2));
  fs::remove(at(3) / "checkpoint.json");
  fs::remove_all(at(4));
  fs::create_symlink("nowhere", at(4));
  fs::remove(at(5) / "model.safetensors");
  fs::create_directory(at(5) / "model.safetensors");  // EISDIR: an error that root gets too
  const auto state = [&](int64_t step) { return examine_checkpoint(at(step)).entry.state; };
  EXPECT_EQ(state(1), CheckpointState::kDamaged);
  EXPECT_EQ(state(2), CheckpointState::kNewer);
  EXPECT_EQ(state(3), CheckpointState::kUnfinished);
  EXPECT_EQ(state(4), CheckpointState::kUnreadable);
  EXPECT_EQ(state(5), CheckpointState::kUnreadable);
  EXPECT_EQ(state(6), CheckpointState::kWhole);
}

TEST_F(CheckpointTest, WhatIsNoFolderIsNamed) {
  fs::create_directory(folder_ / "checkpoints");
  fs::create_symlink("nowhere", at(1));
  put_file(at(2), "text");
  const auto message = [&](int64_t step) {
    return message_of<UnreadableError>([&] { (void)verify_checkpoint(at(step)); });
  };
  EXPECT_TRUE(says(message(1), at(1).string() + " leads nowhere: its folder is missing"));
  EXPECT_TRUE(says(message(2), at(2).string() + " is no folder, so it is no checkpoint"));
}

TEST_F(CheckpointTest, OneThatCannotBeReadIsNotPassedOverIfItIsTheNewest) {
  const config::RunConfig config = tiny_run(folder_);
  save_at(config, {1, 2});
  fs::rename(at(2) / "model.safetensors", folder_ / "kept");
  fs::create_symlink("nowhere", at(2) / "model.safetensors");
  Trainer trainer = Trainer::create(config);
  const auto resumed = [&] { return resume(trainer, folder_ / "checkpoints", config); };
  const std::string message = message_of<CheckpointError>(resumed);
  EXPECT_TRUE(says(message, at(2).string()));
  EXPECT_TRUE(says(message, "later steps may be lost"));
  EXPECT_TRUE(fs::exists(at(2)));

  // An older one need not be read.
  fs::rename(at(2), folder_ / "aside");
  save_at(config, {2});
  fs::remove(at(1) / "model.safetensors");
  fs::create_symlink("nowhere", at(1) / "model.safetensors");
  EXPECT_EQ(resumed().from, at(2));
}

TEST_F(CheckpointTest, ANewerVersionIsRefusedAndStays) {
  const config::RunConfig config = tiny_run(folder_);
  save_at(config, {1, 2});
  put_newer_version(at(2));
  const std::string manifest = file_content(at(2) / "checkpoint.json");
  Trainer trainer = Trainer::create(config);
  const std::string message =
      message_of<CheckpointError>([&] { resume(trainer, folder_ / "checkpoints", config); });
  EXPECT_TRUE(says(message, "Use the Lockstep that wrote it, 9.9"));
  EXPECT_EQ(file_content(at(2) / "checkpoint.json"), manifest);
}

TEST_F(CheckpointTest, FoldersWithoutAnyManifestDoNotStartTrainingAgain) {
  const config::RunConfig config = tiny_run(folder_);
  save_at(config, {1, 2});
  for (const int64_t step : {1, 2}) fs::remove(at(step) / "checkpoint.json");
  Trainer trainer = Trainer::create(config);
  const std::string message =
      message_of<CheckpointError>([&] { resume(trainer, folder_ / "checkpoints", config); });
  EXPECT_TRUE(says(message, "does not start again at step 0"));
  EXPECT_EQ(steps_left(), (std::vector<int64_t>{1, 2}));
}

TEST_F(CheckpointTest, AFolderThatCannotBeListedIsNotAnEmptyOne) {
  put_file(folder_ / "checkpoints", "no folder");
  EXPECT_THROW(list_checkpoints(folder_ / "checkpoints"), UnreadableError);
  fs::remove(folder_ / "checkpoints");
  fs::create_symlink("nowhere", folder_ / "checkpoints");
  EXPECT_THROW(list_checkpoints(folder_ / "checkpoints"), UnreadableError);
}

TEST_F(CheckpointTest, SavingTakesAnotherNameWhereItsOwnIsTaken) {
  put_file(folder_ / "text", "x");
  fs::create_directories(folder_ / "checkpoints");
  put_file(at(1), "no folder");
  save_at(tiny_run(folder_), {1});
  EXPECT_EQ(file_content(at(1)), "no folder");
  EXPECT_EQ(list_checkpoints(folder_ / "checkpoints").back().path, at(1).string() + ".2");
}

TEST_F(CheckpointTest, SavingReplacesAnUnfinishedOneOfItsStep) {
  save_at(tiny_run(folder_), {1});
  fs::remove(at(1) / "checkpoint.json");
  save_at(tiny_run(folder_), {1});
  EXPECT_EQ(examine_checkpoint(at(1)).entry.state, CheckpointState::kWhole);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "checkpoints"), {}), 1);
}

TEST_F(CheckpointTest, DamagedOnesSetAsideEarlierStay) {
  const config::RunConfig config = tiny_run(folder_);
  for (int i = 0; i < 2; ++i) {
    save_at(config, {1, 2});
    damage(at(2) / "model.safetensors");
    Trainer trainer = Trainer::create(config);
    resume(trainer, folder_ / "checkpoints", config);
  }
  EXPECT_TRUE(fs::exists(at(2).string() + ".damaged/checkpoint.json"));
  EXPECT_TRUE(fs::exists(at(2).string() + ".damaged-2/checkpoint.json"));
}

TEST_F(CheckpointTest, WeightsWhoseHashIsWrongAreNotLoaded) {
  const config::RunConfig config = tiny_run(folder_);
  save_at(config, {1});
  std::string content = file_content(at(1) / "model.safetensors");
  content.back() = static_cast<char>(content.back() ^ 1);
  put_file(at(1) / "model.safetensors", content);
  Trainer trainer = Trainer::create(config);
  for (const fs::path& path : {at(1), at(1) / "model.safetensors"}) {
    const std::string message =
        message_of<CheckpointError>([&] { load_weights(trainer.task().model(), path); });
    EXPECT_TRUE(says(message, "tensor \"wte.weight\" is not what was written"));
  }
}

TEST_F(CheckpointTest, ResumingWithoutAnyStartsAtTheBeginning) {
  const config::RunConfig config = tiny_run(folder_);
  Trainer trainer = Trainer::create(config);
  const Resumption resumption = resume(trainer, folder_ / "checkpoints", config);
  EXPECT_FALSE(resumption.from.has_value());
  EXPECT_TRUE(resumption.notes.empty());
  EXPECT_EQ(trainer.steps_done(), 0);
}

TEST_F(CheckpointTest, ADamagedOneIsSetAsideAndTheOlderOneUsed) {
  const config::RunConfig config = tiny_run(folder_);
  save_at(config, {1, 2, 3});
  damage(at(3) / "optimizer.safetensors");
  fs::remove(at(2) / "checkpoint.json");
  Trainer trainer = Trainer::create(config);
  const Resumption resumption = resume(trainer, folder_ / "checkpoints", config);
  EXPECT_EQ(resumption.from, at(1));
  EXPECT_EQ(trainer.steps_done(), 1);
  ASSERT_EQ(resumption.notes.size(), 3u);
  EXPECT_TRUE(says(resumption.notes[0], "optimizer.safetensors"));
  EXPECT_TRUE(says(resumption.notes[1], "it was not written to its end"));
  EXPECT_TRUE(fs::exists(at(3).string() + ".damaged"));
  EXPECT_EQ(steps_left(), (std::vector<int64_t>{1, 2}));
}

TEST_F(CheckpointTest, WhenNoneIsWholeNothingIsTouched) {
  const config::RunConfig config = tiny_run(folder_);
  save_at(config, {1, 2});
  damage(at(1) / "model.safetensors");
  damage(at(2) / "checkpoint.json");
  Trainer trainer = Trainer::create(config);
  const std::string message =
      message_of<CheckpointError>([&] { resume(trainer, folder_ / "checkpoints", config); });
  EXPECT_TRUE(says(message, "none of the 2 checkpoints"));
  EXPECT_TRUE(says(message, "model.safetensors"));
  EXPECT_EQ(steps_left(), (std::vector<int64_t>{1, 2}));
}

TEST_F(CheckpointTest, ChangesOfConfigAndDataAreToldWhenResuming) {
  save_at(tiny_run(folder_), {1});
  const config::RunConfig changed = tiny_run(folder_, "optimizer { learning_rate: 0.5 }");
  put_file(folder_ / "text.txt", file_content(folder_ / "text.txt") + "More. ");
  Trainer trainer = Trainer::create(changed);
  const Resumption resumption = resume(trainer, folder_ / "checkpoints", changed);
  ASSERT_EQ(resumption.notes.size(), 3u);
  EXPECT_TRUE(says(resumption.notes[1], "optimizer.learning_rate 0.003 -> 0.5"));
  EXPECT_TRUE(says(resumption.notes[2], "training data is not what"));
}

/// Rewrites the checkpoint as if written with these arithmetic facts; empty: as by older versions,
/// which told instruction sets (`isa`) alone.
void rewrite_arithmetic(const fs::path& path, std::vector<ArithmeticFact> facts,
                        const std::string& isa = "") {
  CheckpointManifest manifest = parse_manifest(file_content(path / "checkpoint.json"), "x");
  manifest.arithmetic = std::move(facts);
  if (!isa.empty()) manifest.isa = isa;
  put_file(path / "checkpoint.json", format_manifest(manifest));
}

TEST_F(CheckpointTest, BitwiseDoesNotGoOnWithOtherArithmetic) {
  const std::string bitwise = "reproducibility: BITWISE train { micro_batch_size: 1 }";
  save_at(tiny_run(folder_, bitwise), {1});
  std::vector<ArithmeticFact> others = arithmetic_facts();
  for (ArithmeticFact& fact : others) {
    if (fact.name == "kernels") fact.value = "avx9000";
  }
  rewrite_arithmetic(at(1), others);
  const auto resumed = [&](const std::string& more) {
    const config::RunConfig config = tiny_run(folder_, more);
    Trainer trainer = Trainer::create(config);
    return resume(trainer, folder_ / "checkpoints", config);
  };
  const std::string message = message_of<CheckpointError>([&] { resumed(bitwise); });
  EXPECT_TRUE(says(message, "kernels: expected \"avx9000\", got \"avx"));
  EXPECT_TRUE(says(message, "--set reproducibility=ORDINARY --set train.leaves=8"));
  EXPECT_EQ(steps_left(), std::vector<int64_t>{1});

  const Resumption ordinary = resumed("train { micro_batch_size: 1 leaves: 8 }");
  EXPECT_EQ(ordinary.from, at(1));
  EXPECT_TRUE(says(ordinary.notes.back(), "kernels: expected \"avx9000\""));
}

TEST_F(CheckpointTest, BitwiseGoesOnFromOneThatTellsNoArithmetic) {
  const config::RunConfig config =
      tiny_run(folder_, "reproducibility: BITWISE train { micro_batch_size: 1 }");
  save_at(config, {1});
  rewrite_arithmetic(at(1), {});
  Trainer trainer = Trainer::create(config);
  EXPECT_EQ(resume(trainer, folder_ / "checkpoints", config).notes.size(), 1u);
  rewrite_arithmetic(at(1), {}, "mmx");
  EXPECT_TRUE(says(resume(trainer, folder_ / "checkpoints", config).notes.back(),
                   "(other instruction sets): losses may differ"));
}

TEST_F(CheckpointTest, MetricsBeyondTheFirstCheckpointsStepAreAHistory) {
  const RunDirectory run =
      RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse);
  put_file(run.config(), config::to_text(tiny_run(folder_, "checkpoint { every_steps: 2 }")));
  const auto put_steps = [&](int64_t steps) {
    std::string lines;
    for (int64_t step = 1; step <= steps; ++step) {
      lines += fmt::format("{{\"step\":{},\"loss\":1}}\n", step);
    }
    put_file(run.metrics(), lines);
  };
  put_steps(2);  // stopped before the checkpoint of step 2 was written
  require_no_history(run);
  put_steps(3);
  EXPECT_TRUE(says(message_of<CheckpointError>([&] { require_no_history(run); }),
                   "one is written every 2 steps"));
  // Beside training the first one is sure to be written only when the second has begun.
  put_file(run.config(),
           config::to_text(tiny_run(folder_, "checkpoint { every_steps: 2 asynchronous: true }")));
  require_no_history(run);
  put_file(run.config(),
           config::to_text(tiny_run(folder_, "checkpoint { every_steps: 1 asynchronous: true }")));
  EXPECT_THROW(require_no_history(run), CheckpointError);
  put_file(run.config(), config::to_text(tiny_run(folder_, "checkpoint { every_steps: 0 }")));
  require_no_history(run);
}

TEST_F(CheckpointTest, WhatShowsThatACheckpointWasLostIsToldWithTheWaysOut) {
  const RunDirectory run =
      RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse);
  require_no_history(run);
  const auto expect_refused = [&](const std::string& sign) {
    EXPECT_EQ(message_of<CheckpointError>([&] { require_no_history(run); }),
              "[checkpoint] " + run.checkpoints().string() + " has no checkpoint, but " + sign +
                  ": expected one. It was removed, or the disk lost it. Nothing was changed. Put "
                  "it back, or name another --run-dir to start from the beginning.");
  };
  put_file(run.metrics(), "{\"step\":7,\"loss\":1}\n");
  expect_refused("step 7 was trained in " + run.metrics().string() +
                 " and config.txtpb is missing");
  put_file(run.first_save(), "");
  expect_refused(run.first_save().string() + " says that one was written");
  put_file(run.weights(), "");
  expect_refused(run.weights().string() + " holds the weights of its end");
}

TEST(CheckpointManifest, IsReadBackAsItWasWritten) {
  CheckpointManifest manifest;
  manifest.lockstep_version = "1.2.3";
  manifest.position = {12, 15};
  manifest.optimizer = "adamw";
  manifest.optimizer_steps = 11;
  manifest.grad_scaler = {.scale = 0x1p-20, .growth_interval = 7, .growth_tracker = 6};
  manifest.random = {.seed = ~uint64_t{0}, .step = 12, .micro_batch = 3, .call = 4};
  manifest.data = {.low = 1, .high = ~uint64_t{0}};
  manifest.samples_per_batch = 16;
  manifest.early_end = {.steps = 90, .cooldown_steps = 18};
  manifest.isa = "avx2 fma";
  manifest.arithmetic = {{"z", "1"}, {"a", "2"}};
  manifest.files["a b\"c"] = {.bytes = 7, .header = {2, 3}, .tensors = {{"w", {4, 5}}}};
  const std::string text = format_manifest(manifest);
  const CheckpointManifest back = parse_manifest(text, "x");
  EXPECT_EQ(format_manifest(back), text);
  EXPECT_EQ(back.position, manifest.position);
  EXPECT_EQ(back.early_end, manifest.early_end);
  EXPECT_EQ(back.grad_scaler, manifest.grad_scaler);
  EXPECT_EQ(back.random, manifest.random);
  EXPECT_EQ(back.arithmetic, manifest.arithmetic);
  EXPECT_EQ(back.files, manifest.files);
}

TEST(CheckpointManifest, NoChangedByteGoesUnnoticed) {
  const std::string text = format_manifest({.optimizer = "sgd"});
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 2);
    EXPECT_THROW(parse_manifest(changed, "x"), CheckpointError) << i;
    EXPECT_THROW(parse_manifest(text.substr(0, i), "x"), CheckpointError) << i;
  }
}

TEST(CheckpointManifest, DeepNestingIsRefused) {
  const std::string body(1'000'000, '[');
  const std::string hash = ContentHasher().add(std::string_view(body)).result().hex();
  const std::string text = body + ",\n \"hash\": \"" + hash + "\"\n}\n";
  const std::string message = message_of<CheckpointError>([&] { parse_manifest(text, "x"); });
  EXPECT_TRUE(says(message, "nested deeper than 64"));
}

TEST(CheckpointManifest, ANewerFormatNamesTheVersionThatWroteIt) {
  const std::string text = format_manifest({.format_version = 3, .lockstep_version = "9.9"});
  const std::string message = message_of<CheckpointError>([&] { parse_manifest(text, "x"); });
  EXPECT_TRUE(says(message, "format version 3"));
  EXPECT_TRUE(says(message, "9.9"));
}

TEST(CheckpointNames, OnlyStepsAndTheirCopiesAreListed) {
  const TemporaryDirectory folder;
  for (const char* name : {"step-", "step-x", "step-00000012x", "step-00000012.", "step-00000012.x",
                           "step-00000012.2x", "step-00000012.2.3"}) {
    std::filesystem::create_directories(folder / "wrong" / name);
  }
  EXPECT_TRUE(list_checkpoints(folder / "wrong").empty());
  for (const char* name : {"step-00000012", "step-00000012.2"}) {
    std::filesystem::create_directories(folder / "right" / name);
  }
  EXPECT_EQ(list_checkpoints(folder / "right").size(), 2u);
}

}  // namespace
}  // namespace lockstep::train

// Checkpoints that are written while training goes on.

#include "train/run/checkpoint_saver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "core/tensor/allocator.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/run/checkpoint_state.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

const char* const kRun = "train { batch_size: 8 micro_batch_size: 1 leaves: 8 steps: 6 } ";

std::string saving(const std::string& more) {
  return "checkpoint { every_steps: 2 " + more + " } ";
}

TEST(CheckpointSaver, BesideTrainingTheSameBytesAreSaved) {
  for (const auto& [parallel, ranks] :
       {std::pair("", 1), std::pair("parallel { strategy: DDP }", 2),
        std::pair("optimizer { clip_grad_norm: 0 optimizer_in_backward: true }", 2),
        std::pair("parallel { strategy: FULL_SHARD }", 3),
        std::pair("device: \"host:0\" parallel { strategy: HYBRID_SHARD shard_size: 2 }", 4),
        std::pair("device: \"host:0\" parallel { strategy: FULL_SHARD cpu_offload: true }", 2),
        std::pair("device: \"host:0\" optimizer { sgd { momentum: 0.9 } }", 1)}) {
    // One rank writes whole files whatever it is asked for.
    for (const char* files : {"files: WHOLE", "files: SHARDS"}) {
      if (ranks == 1 && files == std::string("files: SHARDS")) continue;
      const std::string config = std::string(kRun) + parallel;
      const TemporaryDirectory at_once, beside;
      rethrow_first(run_on_ranks(tiny_run(at_once, config + saving(files)), at_once, ranks));
      rethrow_first(run_on_ranks(
          tiny_run(beside, config + saving(files + std::string(" asynchronous: true"))), beside,
          ranks));
      EXPECT_TRUE(weights_of(beside) == weights_of(at_once)) << parallel << files;
      const auto entries = list_checkpoints(beside / "run/checkpoints");
      ASSERT_EQ(entries.size(), 3u) << parallel << files;
      for (const CheckpointEntry& entry : entries) {
        CheckpointManifest a = verify_checkpoint(entry.path);
        CheckpointManifest b =
            verify_checkpoint(at_once / "run/checkpoints" / entry.path.filename());
        a.files.erase("config.txtpb"), b.files.erase("config.txtpb");
        EXPECT_EQ(format_manifest(a), format_manifest(b)) << parallel << files << entry.path;
      }
    }
  }
}

/// Saves a trainer's state by `saver`, and calls `then` on the thread that writes.
void begin_save(CheckpointSaver& saver, Trainer& trainer, const fs::path& folder,
                std::function<void()> then) {
  saver.begin(CheckpointSaver::Leader{.folder = folder,
                                      .record = record_of(trainer, "config"),
                                      .collect = {},
                                      .then = std::move(then)});
}

TEST(CheckpointSaver, TrainingGoesOnWhileTheStateOfTheSaveIsWritten) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "checkpoint { asynchronous: true }");
  Trainer trainer = Trainer::create(config);
  trainer.step();
  const std::string before = state_bytes(trainer);
  CheckpointSaver saver(config, trainer, nullptr);
  std::atomic<bool> stepped = false;
  begin_save(saver, trainer, folder / "checkpoints", [&] { stepped.wait(false); });
  trainer.step();
  EXPECT_TRUE(saver.is_under_way());
  EXPECT_FALSE(saver.has_ended());
  stepped = true;
  stepped.notify_all();
  saver.finish();
  EXPECT_FALSE(saver.is_under_way());
  Trainer restored = Trainer::create(config);
  const fs::path path = folder / "checkpoints/step-00000001";
  restore(restored, path, verify_checkpoint(path));
  EXPECT_EQ(state_bytes(restored), before);
}

TEST(CheckpointSaver, CopiesTakeNoMoreMemoryWithEverySave) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "checkpoint { asynchronous: true }");
  Trainer trainer = Trainer::create(config);
  CheckpointSaver saver(config, trainer, nullptr);
  int64_t first = 0;
  for (int i = 0; i < 4; ++i) {
    trainer.step();
    begin_save(saver, trainer, folder / "checkpoints", {});
    saver.finish();
    const int64_t now = allocator(kCPU).stats().allocated;
    if (i == 0) first = now;
    EXPECT_EQ(now, first) << i;
  }
}

TEST(CheckpointSaver, AWriterThatFailsEndsTheRunOnAllRanks) {
  for (const auto& [more, ranks] :
       {std::pair("", 1), std::pair("parallel { strategy: FULL_SHARD }", 3)}) {
    for (const char* asynchronous : {"asynchronous: false", "asynchronous: true"}) {
      const TemporaryDirectory run;
      const config::RunConfig config =
          tiny_run(run, kRun + std::string(more) + saving(asynchronous));
      // In the first step a file takes the name of the folder.
      const auto errors = run_on_ranks(config, run, ranks, [&] {
        if (!fs::exists(run / "run/checkpoints")) put_file(run / "run/checkpoints", "");
        return false;
      });
      for (const std::exception_ptr& error : errors) {
        ASSERT_TRUE(error != nullptr) << more << asynchronous;
        expect_error<DataError>([&] { std::rethrow_exception(error); }, "checkpoints");
      }
    }
  }
}

/// How many times `text` says that a save waited for the one before it.
int64_t told_waits(const std::string& text) {
  const std::string words = " s for that of step ";
  int64_t count = 0;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
  return count;
}

TEST(CheckpointSaver, TheNextSaveWaitsForTheOneBeforeAndSaysSo) {
  // Every step saves more than it computes. Whether a save still waits depends on the disk, so runs
  // are repeated until one has waited.
  int64_t waits = 0;
  for (int attempt = 0; waits == 0 && attempt < 20; ++attempt) {
    const TemporaryDirectory run;
    const config::RunConfig config = tiny_run(
        run,
        "train { batch_size: 1 micro_batch_size: 1 steps: 6 } model { gpt2 { context_length: "
        "2 layers: 1 width: 512 } } checkpoint { every_steps: 1 asynchronous: true }");
    TrainingRun training(config,
                         RunDirectory::create_at(run / "run", RunDirectory::Existing::kContinue),
                         "{}", nullptr, nullptr);
    std::FILE* const terminal = std::fopen((run / "terminal").c_str(), "w");
    const RunSummary summary = training.run({.terminal = terminal});
    std::fclose(terminal);
    ASSERT_TRUE(summary.saves.has_value());
    EXPECT_EQ(summary.saves->saves, 6);
    waits = summary.saves->waits;
    EXPECT_EQ(told_waits(file_content(run / "terminal")), waits);
    EXPECT_GE(summary.saves->stall_seconds, summary.saves->wait_seconds);
    EXPECT_TRUE(says(file_content(run / "run/metrics.jsonl"), "\"checkpoint_ms\":"));
  }
  EXPECT_GE(waits, 1);
}

}  // namespace
}  // namespace lockstep::train

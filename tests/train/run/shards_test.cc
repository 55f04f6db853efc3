// Checkpoints in shards: every rank writes its part, any number of ranks goes on from them.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/checkpoint_state.h"
#include "train/run/consolidate.h"
#include "train/run/resume.h"
#include "train/weights.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

/// A model with parameters of more than a block of 4,096 elements, of several blocks, and of less.
std::string model_of(int layers, int steps) {
  return fmt::format(
      "train {{ batch_size: 8 micro_batch_size: 1 steps: {} }} model {{ gpt2 {{ layers: {} width: "
      "64 }} }} reproducibility: BITWISE ",
      steps, layers);
}
const std::string kModel = model_of(3, 20);

struct Writers {
  const char* parallel;
  int ranks;
};
const Writers kWriters[] = {
    {"parallel { strategy: FULL_SHARD }", 4},
    {"parallel { strategy: FULL_SHARD }", 3},
    {"parallel { strategy: SHARD_GRAD_OP }", 2},
    {"parallel { strategy: SHARD_OPTIMIZER }", 3},
    {"parallel { strategy: HYBRID_SHARD shard_size: 2 }", 6},
    {"parallel { strategy: DDP } checkpoint { files: SHARDS }", 3},
};

/// Saves the state after `steps` steps from all ranks. Returns the checkpoint's folder.
fs::path save_on_ranks(const config::RunConfig& config, const fs::path& folder, int ranks,
                       int steps) {
  rethrow_first(dist::run_thread_ranks(ranks, [&](dist::ProcessGroup& group) {
    const StreamGuard own_stream(get_stream_from_pool(parse_device(config.device())));
    Trainer trainer =
        Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
    for (int i = 0; i < steps; ++i) trainer.step();
    CheckpointSaver saver(config, trainer, &group);
    ASSERT_TRUE(saver.in_shards());
    const CheckpointRecord record = record_of(trainer, config::to_text(config));
    std::optional<CheckpointSaver::Leader> leader;
    if (group.rank() == 0) leader = {.folder = folder, .record = record};
    saver.begin(std::move(leader));
    saver.finish();
  }));
  return folder / fmt::format("step-{:08}", steps);
}

TEST(Shards, HoldTheStateOfOneRankWhoeverWroteThem) {
  const TemporaryDirectory folder;
  Trainer one = Trainer::create(tiny_run(folder, kModel));
  for (int i = 0; i < 2; ++i) one.step();
  const std::string expected = state_bytes(one);
  for (const Writers& writers : kWriters) {
    const TemporaryDirectory run;
    const fs::path path =
        save_on_ranks(tiny_run(folder, kModel + writers.parallel), run.path(), writers.ranks, 2);
    const CheckpointManifest manifest = verify_checkpoint(path);
    ASSERT_TRUE(manifest.shards.has_value()) << writers.parallel;
    EXPECT_EQ(manifest.shards->world, writers.ranks);
    EXPECT_FALSE(fs::exists(path / "model.safetensors"));
    Trainer resumed = Trainer::create(tiny_run(folder, kModel));
    restore(resumed, path, manifest);
    EXPECT_EQ(state_bytes(resumed), expected) << writers.parallel << writers.ranks;
    EXPECT_EQ(resumed.position(), one.position());
  }
}

TEST(Shards, EveryRankWritesAndNoElementTwice) {
  const TemporaryDirectory folder;
  for (const Writers& writers : kWriters) {
    const TemporaryDirectory run;
    const fs::path path =
        save_on_ranks(tiny_run(folder, kModel + writers.parallel), run.path(), writers.ranks, 1);
    const CheckpointManifest manifest = verify_checkpoint(path);
    uint64_t bytes = 0;
    for (const auto& [name, digest] : manifest.files) {
      if (name.ends_with(".safetensors")) bytes += digest.bytes;
    }
    Trainer one = Trainer::create(tiny_run(folder, kModel));
    const uint64_t whole = state_bytes(one).size();
    EXPECT_GE(bytes, whole) << writers.parallel;
    EXPECT_LT(bytes, whole + whole / 10) << writers.parallel;  // headers
    for (int rank = 0; rank < writers.ranks; ++rank) {
      EXPECT_TRUE(manifest.files.contains(shard_file(kWeightShards, rank, writers.ranks)) ||
                  manifest.files.contains(shard_file(kOptimizerShards, rank, writers.ranks)))
          << writers.parallel << " " << rank;
    }
  }
}

TEST(Shards, ARunGoesOnOnOtherRanksWithOtherFiles) {
  const std::string more = model_of(3, 12);
  const TemporaryDirectory whole;
  rethrow_first(run_on_ranks(tiny_run(whole, more), whole, 1));
  const TemporaryDirectory parts;
  for (const Writers& writers : kWriters) {
    std::atomic<int> asked = 0;
    const auto errors = run_on_ranks(tiny_run(parts, more + writers.parallel), parts, writers.ranks,
                                     [&] { return ++asked >= 2; });
    expect_error<DataError>([&] { std::rethrow_exception(errors[0]); }, "stopped");
  }
  rethrow_first(run_on_ranks(tiny_run(parts, more), parts, 1));
  EXPECT_TRUE(weights_of(parts) == weights_of(whole));
}

TEST(Shards, AFinishedRunThatIsStartedAgainChangesNoFile) {
  const TemporaryDirectory run;
  const config::RunConfig config =
      tiny_run(run, model_of(3, 2) + "parallel { strategy: FULL_SHARD }");
  rethrow_first(run_on_ranks(config, run, 2));
  const auto written = fs::last_write_time(run / "run/model.safetensors");
  rethrow_first(run_on_ranks(config, run, 3));
  EXPECT_EQ(fs::last_write_time(run / "run/model.safetensors"), written);
}

TEST(Shards, WeightsAreReadAsAModelByOtherRuns) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, kModel + "parallel { strategy: FULL_SHARD }");
  const fs::path path = save_on_ranks(config, folder / "run", 3, 1);
  Trainer one = Trainer::create(tiny_run(folder, kModel));
  one.step();
  const auto model = load_model(path);
  const auto stored = one.task().model().stored_parameters();
  const auto loaded = model->stored_parameters();
  ASSERT_EQ(loaded.size(), stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    const Tensor a = stored[i].tensor.contiguous(), b = loaded[i].tensor.contiguous();
    ASSERT_EQ(a.nbytes(), b.nbytes());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.nbytes()), 0) << stored[i].name;
  }
}

TEST(Shards, ConsolidatedTheyAreTheFilesOfOneRank) {
  const TemporaryDirectory folder;
  Trainer one = Trainer::create(tiny_run(folder, kModel));
  one.step();
  const fs::path whole = save_checkpoint(folder / "one", one, "config");
  for (const Writers& writers : kWriters) {
    const TemporaryDirectory run;
    const fs::path path =
        save_on_ranks(tiny_run(folder, kModel + writers.parallel), run.path(), writers.ranks, 1);
    consolidate(path, run / "whole");
    verify_checkpoint(run / "whole");
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "config.json"}) {
      EXPECT_TRUE(file_content(run / "whole" / name) == file_content(whole / name))
          << writers.parallel << name;
    }
    Trainer resumed = Trainer::create(tiny_run(folder, kModel));
    restore(resumed, run / "whole", verify_checkpoint(run / "whole"));
    EXPECT_EQ(state_bytes(resumed), state_bytes(one));
    EXPECT_THROW(consolidate(path, run / "whole"), ConfigError);
    EXPECT_THROW(consolidate(run / "whole", run / "again"), CheckpointError);
    EXPECT_FALSE(fs::exists(run / "again"));
  }
}

/// A checkpoint of four ranks, to be damaged.
class DamagedShards : public testing::Test {
 protected:
  void SetUp() override {
    config_ = tiny_run(folder_, kModel + "parallel { strategy: FULL_SHARD }");
    path_ = save_on_ranks(config_, folder_ / "checkpoints", 4, 1);
    file_ = path_ / shard_file(kOptimizerShards, 2, 4);
  }
  void expect_refused(const std::string& named) {
    EXPECT_TRUE(says(message_of<CheckpointError>([&] { verify_checkpoint(path_); }), named));
    Trainer trainer = Trainer::create(tiny_run(folder_, kModel));
    EXPECT_THROW(resume(trainer, folder_ / "checkpoints", config_), CheckpointError);
    EXPECT_EQ(trainer.steps_done(), 0);
  }

  TemporaryDirectory folder_;
  config::RunConfig config_;
  fs::path path_;
  fs::path file_;
};

TEST_F(DamagedShards, AFlippedBitIsNamedWithItsFile) {
  std::string content = file_content(file_);
  content[content.size() - 5] = static_cast<char>(content[content.size() - 5] ^ 1);
  put_file(file_, content);
  expect_refused("optimizer-00003-of-00004.safetensors");
}

TEST_F(DamagedShards, ATruncatedFileIsNamed) {
  fs::resize_file(file_, fs::file_size(file_) / 2);
  expect_refused("optimizer-00003-of-00004.safetensors");
}

TEST_F(DamagedShards, AMissingFileIsNamed) {
  fs::remove(file_);
  expect_refused("optimizer-00003-of-00004.safetensors: the file is missing");
}

TEST_F(DamagedShards, AFileOfAnotherCheckpointIsNamed) {
  const fs::path other = save_on_ranks(config_, folder_ / "other", 4, 2);
  fs::copy_file(other / file_.filename(), file_, fs::copy_options::overwrite_existing);
  expect_refused("optimizer-00003-of-00004.safetensors");
}

TEST_F(DamagedShards, AManifestOfAnotherCheckpointIsRefused) {
  const fs::path other = save_on_ranks(config_, folder_ / "other", 4, 2);
  fs::copy_file(other / "checkpoint.json", path_ / "checkpoint.json",
                fs::copy_options::overwrite_existing);
  expect_refused("is not what was written");
}

TEST_F(DamagedShards, AnotherModelIsRefusedWithItsTensors) {
  const config::RunConfig other =
      tiny_run(folder_, model_of(2, 20) + "parallel { strategy: FULL_SHARD }");
  Trainer trainer = Trainer::create(other);
  const std::string message =
      message_of<CheckpointError>([&] { restore(trainer, path_, verify_checkpoint(path_)); });
  EXPECT_TRUE(says(message, "unexpected transformer.h.2.attn.c_attn.weight") ||
              says(message, "unexpected h.2.attn.c_attn.weight"))
      << message;
}

CheckpointManifest small_manifest() {
  CheckpointManifest manifest;
  manifest.format_version = kShardedManifestVersion;
  manifest.optimizer = "sgd";
  manifest.files["model-00001-of-00002.safetensors"] = {.tensors = {{"w", {1, 2}}}};
  manifest.files["model-00002-of-00002.safetensors"] = {.tensors = {{"w", {3, 4}}}};
  manifest.shards =
      ShardIndex{.world = 2, .strategy = "FULL_SHARD", .weights = {}, .optimizer = {}};
  manifest.shards->weights["w"] = {
      .dtype = DType::kF32, .shape = {3, 2}, .transposed = true, .pieces = {{0, 0, 4}, {1, 4, 6}}};
  return manifest;
}

TEST(ShardIndex, IsReadBackAsItWasWritten) {
  const CheckpointManifest manifest = small_manifest();
  const std::string text = format_manifest(manifest);
  const CheckpointManifest back = parse_manifest(text, "x");
  EXPECT_EQ(back.shards, manifest.shards);
  EXPECT_EQ(format_manifest(back), text);
}

TEST(ShardIndex, PiecesThatAreNotTheTensorAreRefusedByName) {
  for (const auto& [pieces, named] :
       {std::pair<std::vector<ShardPiece>, const char*>({{0, 0, 4}, {1, 5, 6}}, "from element 4"),
        {{{0, 0, 4}, {1, 3, 6}}, "from element 4"},
        {{{0, 0, 4}}, "has 6 elements, and its pieces 4"},
        {{{0, 0, 4}, {1, 4, 7}}, "has 6 elements, and its pieces 7"},
        {{{0, 0, 4}, {2, 4, 6}}, "a piece of rank 2, of 2 ranks"},
        {{{0, 0, 3}, {1, 3, 4}, {0, 4, 6}}, "two pieces of one rank"},
        {{{0, 0, 4}, {1, 4, 4}, {1, 4, 6}}, "from element 4"}}) {
    CheckpointManifest manifest = small_manifest();
    manifest.shards->weights["w"].pieces = pieces;
    const std::string message =
        message_of<CheckpointError>([&] { parse_manifest(format_manifest(manifest), "x"); });
    EXPECT_TRUE(says(message, "tensor \"w\"")) << message;
    EXPECT_TRUE(says(message, named)) << message;
  }
}

TEST(ShardIndex, FilesThatDisagreeWithThePiecesAreRefused) {
  CheckpointManifest manifest = small_manifest();
  manifest.files.erase("model-00002-of-00002.safetensors");
  EXPECT_TRUE(
      says(message_of<CheckpointError>([&] { parse_manifest(format_manifest(manifest), "x"); }),
           "\"files\" lists none in model-00002-of-00002.safetensors"));
}

}  // namespace
}  // namespace lockstep::train

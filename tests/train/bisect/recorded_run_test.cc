#include "train/bisect/recorded_run.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "tests/train/bisect/recorded_runs.h"

namespace lockstep::train {
namespace {

TEST(RecordedRun, RefusesADirectoryOfALaterVersion) {
  const TemporaryDirectory folder;
  const RecordedRun a = recorded(folder, "a", six_steps(folder));
  put_file(a.directory.environment(), "{\"version\": \"999.0.0\"}");
  EXPECT_TRUE(says(message_of<CheckpointError>([&] { (void)read_run(a.directory.path()); }),
                   "computed by Lockstep 999.0.0"));
}

TEST(RecordedRun, RefusesWhatIsNoRun) {
  const TemporaryDirectory folder;
  EXPECT_THROW((void)read_run(folder / "nothing"), DataError);
  const RecordedRun a = recorded(folder, "a", six_steps(folder));
  std::filesystem::remove(a.directory.config());
  EXPECT_TRUE(says(message_of<DataError>([&] { (void)read_run(a.directory.path()); }),
                   "has no config.txtpb"));
}

class ConfiguredRuns : public testing::Test {
 protected:
  RecordedRun run(const std::string& more = "") const {
    return {
        .directory = RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kContinue),
        .name = "run",
        .config_text = "model { gpt2 { layers: 1 heads: 1 width: 8 context_length: 8 } " +
                       (more.starts_with("recompute") ? more + " } " : "} " + more) +
                       " data { random {} } train { steps: 1 batch_size: 8 }"};
  }
  TemporaryDirectory folder_;
};

TEST_F(ConfiguredRuns, MustAgreeInWhatDecidesTheirCalls) {
  const RecordedRun a = run();
  const auto fields = [&](const std::string& more) {
    return fmt::format("{}", fmt::join(incomparable_fields(a, run(more)), "; "));
  };
  EXPECT_EQ(fields(""), "");
  EXPECT_EQ(fields("seed: 3"), "seed 1337 -> 3");
  EXPECT_EQ(fields("precision: BF16_MIXED"), "precision F32 -> BF16_MIXED");
  EXPECT_EQ(fields("recompute: BLOCK"), "");
  EXPECT_EQ(fields("optimizer { learning_rate: 1e-4 }"), "");
  EXPECT_EQ(fields("name: \"other\""), "");
}

TEST_F(ConfiguredRuns, ChangedFieldsAreThoseThatChangeNumbersAlone) {
  const RecordedRun a = run();
  const auto fields = [&](const std::string& more) {
    return fmt::format("{}", fmt::join(changed_fields(a, run(more)), "; "));
  };
  EXPECT_EQ(fields(""), "");
  EXPECT_EQ(fields("seed: 3 name: \"other\" device: \"host:0\""), "");
  EXPECT_EQ(fields("optimizer { clip_grad_norm: 0.5 }"), "optimizer.clip_grad_norm 1 -> 0.5");
  EXPECT_EQ(fields("reproducibility: BITWISE"), "reproducibility ORDINARY -> BITWISE");
}

TEST(RecordedRun, KeepsWhatItsFilesSay) {
  const TemporaryDirectory folder;
  const RecordedRun a = recorded(folder, "a", six_steps(folder));
  EXPECT_EQ(a.name, (folder / "a").string());
  EXPECT_EQ(a.version, LOCKSTEP_VERSION);
  EXPECT_EQ(a.steps.size(), 6u);
  EXPECT_EQ(a.ranks, 1);
  EXPECT_FALSE(a.arithmetic.empty());
  EXPECT_EQ(difference_to_here(a), "");
  RecordedRun other = a;
  other.arithmetic.begin()->second += "x";
  const std::string fact = a.arithmetic.begin()->first, value = a.arithmetic.begin()->second;
  EXPECT_EQ(difference_to_here(other),
            fmt::format("{}: expected \"{}x\", got \"{}\"", fact, value, value));
  other.arithmetic.clear();
  EXPECT_EQ(difference_to_here(other), "") << "what is not known is no difference";

  const auto put = [&](const std::string& text) { put_file(a.directory.environment(), text); };
  put(R"({"version": 7, "arithmetic": {"x": "y", "z": 1}})");
  const RecordedRun changed = read_run(a.directory.path());
  EXPECT_EQ(changed.version, "");
  EXPECT_EQ(changed.arithmetic, (std::map<std::string, std::string>{{"x", "y"}}));
  for (const char* nothing : {"[1]", "{}", R"({"arithmetic": ["x"]})"}) {
    put(nothing);
    EXPECT_TRUE(read_run(a.directory.path()).arithmetic.empty()) << nothing;
  }
  put("{");
  const std::string message = message_of<DataError>([&] { (void)read_run(a.directory.path()); });
  EXPECT_TRUE(says(message, "[bisect] " + a.directory.environment().string() + ": "));
  EXPECT_TRUE(message.ends_with("Copy the file from the run again."));
  std::filesystem::remove(a.directory.environment());
  EXPECT_EQ(read_run(a.directory.path()).version, "");
}

TEST(RecordedRun, OfALaterVersionInAnyPartIsRefused) {
  const TemporaryDirectory folder;
  const RecordedRun a = recorded(folder, "a", six_steps(folder));
  std::array<int, 3> parts{};
  ASSERT_EQ(std::sscanf(LOCKSTEP_VERSION, "%d.%d.%d", &parts[0], &parts[1], &parts[2]), 3);
  const auto is_refused = [&](const std::array<int, 3>& version) {
    put_file(a.directory.environment(),
             fmt::format(R"({{"version": "{}"}})", fmt::join(version, ".")));
    return says(message_of<CheckpointError>([&] { (void)read_run(a.directory.path()); }),
                "or earlier. Use that version.");
  };
  EXPECT_FALSE(is_refused(parts));
  for (const int part : {0, 1, 2}) {
    std::array<int, 3> later = parts;
    ++later[static_cast<size_t>(part)];
    EXPECT_TRUE(is_refused(later)) << part;
  }
  EXPECT_FALSE(is_refused({0, 0, 999}));
}

}  // namespace
}  // namespace lockstep::train

// Every call that a small run makes on its files fails once: the run then has the bits of an
// undisturbed one, or it is refused with a message and every old byte in place.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <regex>

#include "tests/launcher/faults/file_faults.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kErrors = {"eio", "enospc", "eacces", "estale"};

class FaultSweep : public FileFaults {
 protected:
  static constexpr const char* kReads = " FILE_FAULTS_READS=1";

  Result train(const std::string& variables = "", const std::string& more = "") const {
    return run("train run.txtpb --run-dir run " + more, variables);
  }
  /// The contents of all files of checkpoints, which a refused run may not change.
  std::map<std::string, std::string> checkpoint_bytes() const {
    std::map<std::string, std::string> found;
    if (!fs::exists(folder_ / "run/checkpoints")) return found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "run/checkpoints")) {
      const std::string path = entry.path().string();
      if (entry.is_regular_file() && path.find("/.partial-") == path.npos) {
        found[path] = file_content(entry.path());
      }
    }
    return found;
  }
  /// Makes call after call fail in a run that starts from the folder "start", and checks what
  /// comes of it, and of starting again.
  void sweep(const std::string& weights) {
    const auto begin_again = [&] {
      fs::remove_all(folder_ / "run");
      if (fs::exists(folder_ / "start")) {
        fs::copy(folder_ / "start", folder_ / "run", fs::copy_options::recursive);
      }
    };
    begin_again();
    const std::map<std::string, std::string> before = checkpoint_bytes();
    ASSERT_EQ(train(counting("run") + kReads).status, 0);
    const std::vector<FileCall> calls = file_calls();
    ASSERT_GT(calls.size(), 100u);
    std::map<std::pair<std::string, std::string>, int> seen;
    for (const FileCall& call : calls) {
      // Calls that repeat one another, as writes of metrics and files of each checkpoint, are tried
      // twice.
      const std::string file = std::regex_replace(call.path, std::regex("[0-9]+"), "N");
      if (++seen[{call.name, file}] > 2) continue;
      const char* error = kErrors[static_cast<size_t>(call.number) % kErrors.size()];
      const std::string what = fmt::format("{} {} {} {}", call.number, call.name, call.path, error);
      begin_again();
      const Result disturbed = train(faults("run", call.number, error) + kReads);
      if (disturbed.status != 0) {
        EXPECT_TRUE(disturbed.status >= 2 && disturbed.status <= 4)
            << what << ": " << disturbed.status << disturbed.errors;
        EXPECT_TRUE(says(disturbed.errors, "Error: ")) << what;
        const std::map<std::string, std::string> after = checkpoint_bytes();
        for (const auto& [path, content] : before) {
          const auto found = after.find(path);
          ASSERT_TRUE(found != after.end() && found->second == content)
              << what << ": " << path << "\n"
              << disturbed.errors;
        }
        const Result again = train();
        ASSERT_EQ(again.status, 0) << what << "\n" << disturbed.errors << again.errors;
      }
      ASSERT_EQ(file_content(folder_ / "run/model.safetensors"), weights) << what;
    }
  }
};

TEST_F(FaultSweep, ANewRunIsNotSpoiledByAnyCallThatFails) {
  put_config("run.txtpb", "checkpoint { every_steps: 3 keep_last: 9 }\n");
  ASSERT_EQ(train().status, 0);
  sweep(file_content(folder_ / "run/model.safetensors"));
}

TEST_F(FaultSweep, AResumedRunIsNotSpoiledByAnyCallThatFails) {
  put_config("run.txtpb", "checkpoint { every_steps: 2 keep_last: 9 }\n");
  ASSERT_EQ(train("", "--steps 4 --set schedule.decay_steps=6").status, 0);
  fs::rename(folder_ / "run", folder_ / "start");
  fs::copy(folder_ / "start", folder_ / "run", fs::copy_options::recursive);
  ASSERT_EQ(train().status, 0);
  sweep(file_content(folder_ / "run/model.safetensors"));
}

TEST_F(FaultSweep, ConfigsAndTextsThatCannotBeReadAreNamed) {
  fs::create_directory(folder_ / "in");
  put_config("in/run.txtpb");
  put_file(folder_ / "in/text.txtpb", "data { text { path: 'in/text' held_out_bytes: 100 } }\n");
  put_file(folder_ / "in/text", std::string(400, 'a'));
  const std::string line = "train in/run.txtpb in/text.txtpb --run-dir run";
  ASSERT_EQ(run(line, counting("in") + kReads).status, 0);
  const std::string weights = file_content(folder_ / "run/model.safetensors");
  int refused = 0;
  for (const FileCall& call : file_calls()) {
    const char* error = kErrors[static_cast<size_t>(call.number) % kErrors.size()];
    const std::string what = fmt::format("{} {} {} {}", call.number, call.name, call.path, error);
    fs::remove_all(folder_ / "run");
    const Result result = run(line, faults("in", call.number, error) + kReads);
    if (result.status == 0) {
      EXPECT_EQ(file_content(folder_ / "run/model.safetensors"), weights) << what;
      continue;
    }
    ++refused;
    EXPECT_TRUE(result.status == 2 || result.status == 3) << what << ": " << result.status;
    EXPECT_TRUE(says(result.errors, "Error: ")) << what << result.errors;
    EXPECT_TRUE(says(result.errors, fs::path(call.path).filename().string()))
        << what << result.errors;
    EXPECT_FALSE(fs::exists(folder_ / "run/checkpoints")) << what;
  }
  EXPECT_GE(refused, 6);
}

TEST_F(FaultSweep, OldCheckpointsThatCannotBeRemovedAreNamedAndTrainingGoesOn) {
  put_config("run.txtpb", "checkpoint { every_steps: 2 keep_last: 1 }\n");
  ASSERT_EQ(train(counting("run") + kReads).status, 0);
  const std::string weights = file_content(folder_ / "run/model.safetensors");
  int tried = 0;
  for (const FileCall& call : file_calls()) {
    const bool is_asked = call.name == "access" && says(call.path, "/step-");
    const bool is_removed =
        says(call.path, "/.partial-removed-") && (call.name == "unlinkat" || call.name == "rename");
    if (!is_asked && !is_removed) continue;
    ++tried;
    fs::remove_all(folder_ / "run");
    const Result result = train(faults("run", call.number, "eacces") + kReads);
    const std::string what = fmt::format("{} {}", call.name, call.path);
    EXPECT_EQ(result.status, 0) << what << result.errors;
    EXPECT_TRUE(says(result.errors, "Permission denied")) << what << result.errors;
    EXPECT_EQ(file_content(folder_ / "run/model.safetensors"), weights) << what;
    EXPECT_EQ(run("checkpoint verify run").status, 0) << what;
  }
  EXPECT_GT(tried, 6);
}

TEST_F(FaultSweep, VerifyNeedsNoLockFile) {
  put_config("run.txtpb");
  ASSERT_EQ(train().status, 0);
  ASSERT_EQ(run("checkpoint verify run", counting("run") + kReads).status, 0);
  const int64_t open = find_call(file_calls(), "open", "run.lock");
  ASSERT_GT(open, 0);
  const Result result = run("checkpoint verify run", faults("run", open, "eacces") + kReads);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.output, "whole: weights of the run's end"));
}

}  // namespace
}  // namespace lockstep::launcher

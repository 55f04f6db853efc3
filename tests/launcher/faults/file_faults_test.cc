// Tests libfile_faults.so itself, on which other tests rely, with `lockstep train`.

#include "tests/launcher/faults/file_faults.h"

#include "launcher/exit_code.h"

namespace lockstep::launcher {
namespace {

constexpr int kKilled = 128 + 9;  // as reported by a shell

class FileFaultsTest : public FileFaults {
 protected:
  FileFaultsTest() { put_config("run.txtpb"); }

  Result train(const std::string& variables = "") const {
    std::filesystem::remove_all(folder_ / "out");
    return run("train run.txtpb --run-dir out", variables);
  }
  /// The calls of a run without faults.
  std::vector<FileCall> calls_of_training() const {
    const Result result = train(counting("out"));
    EXPECT_EQ(result.status, 0) << result.errors;
    return file_calls();
  }
  bool exists(std::string_view name) const {
    return std::filesystem::exists(folder_ / "out" / name);
  }
  /// Whether a partially written file is left over.
  bool leaves_partial() const {
    const std::filesystem::directory_iterator entries(folder_ / "out");
    return std::any_of(begin(entries), end(entries), [](const auto& entry) {
      return says(entry.path().filename().string(), ".partial-");
    });
  }
};

TEST_F(FileFaultsTest, CountsTheCallsOnTheFolderInTheirOrder) {
  const std::vector<FileCall> calls = calls_of_training();
  ASSERT_FALSE(calls.empty());
  const std::string folder = std::filesystem::canonical(folder_ / "out").string();
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].number, static_cast<int64_t>(i) + 1);
    EXPECT_TRUE(calls[i].path.starts_with(folder)) << calls[i].path;
  }
  EXPECT_EQ(calls[0].name, "mkdir");
  EXPECT_EQ(calls[0].path, folder);
  int64_t before = 0;
  for (const auto& [name, file] :
       std::vector<std::pair<std::string, std::string>>{{"open", "model.safetensors.partial-"},
                                                        {"write", "model.safetensors.partial-"},
                                                        {"fsync", "model.safetensors.partial-"},
                                                        {"close", "model.safetensors.partial-"},
                                                        {"rename", "model.safetensors"}}) {
    const int64_t number = find_call(calls, name, file);
    EXPECT_GT(number, before) << name << " " << file;
    before = number;
  }
  EXPECT_EQ(std::ranges::count_if(calls,
                                  [](const FileCall& call) {
                                    return call.name == "write" &&
                                           call.path.ends_with("/metrics.jsonl");
                                  }),
            6);
}

TEST_F(FileFaultsTest, AnotherFolderIsNotCounted) {
  EXPECT_EQ(train(counting("ou")).status, 0);
  EXPECT_TRUE(file_calls().empty());
}

TEST_F(FileFaultsTest, KillStopsBeforeAndAfterTheCall) {
  const int64_t rename = find_call(calls_of_training(), "rename", "config.txtpb");
  ASSERT_GT(rename, 0);
  EXPECT_EQ(train(faults("out", rename, "kill")).status, kKilled);
  EXPECT_FALSE(exists("config.txtpb"));
  EXPECT_TRUE(leaves_partial());
  EXPECT_EQ(train(faults("out", rename, "kill_after")).status, kKilled);
  EXPECT_TRUE(exists("config.txtpb"));
  EXPECT_FALSE(leaves_partial());
}

TEST_F(FileFaultsTest, HalfStopsWithinTheWrite) {
  const int64_t write = find_call(calls_of_training(), "write", "metrics.jsonl");
  ASSERT_GT(write, 0);
  EXPECT_EQ(train(faults("out", write, "half")).status, kKilled);
  const std::string half = file_content(folder_ / "out/metrics.jsonl");
  EXPECT_TRUE(half.starts_with("{\"step\":1,")) << half;
  EXPECT_EQ(half.find('\n'), half.npos) << half;
}

TEST_F(FileFaultsTest, AShortWriteIsContinued) {
  const std::vector<FileCall> calls = calls_of_training();
  const std::string weights = file_content(folder_ / "out/model.safetensors");
  const int64_t write = find_call(calls, "write", "model.safetensors.partial-");
  ASSERT_GT(write, 0);
  EXPECT_EQ(train(faults("out", write, "short") + " " + counting("out")).status, 0);
  EXPECT_EQ(file_content(folder_ / "out/model.safetensors"), weights);
  EXPECT_EQ(file_calls().size(), calls.size() + 1);
}

TEST_F(FileFaultsTest, AFailingCallEndsWithThreeAndTheSystemsReason) {
  const std::vector<FileCall> calls = calls_of_training();
  struct Case {
    const char* call;
    const char* file;
    const char* action;
    const char* reason;
  };
  for (const Case& failing :
       {Case{"mkdir", "out", "erofs", "Read-only file system"},
        Case{"write", "metrics.jsonl", "enospc", "No space left on device"},
        Case{"write", "events.out.tfevents.", "eio", "Input/output error"},
        Case{"fsync", "config.txtpb.partial-", "eio", "Input/output error"},
        Case{"close", "config.txtpb.partial-", "enospc", "No space left on device"},
        Case{"rename", "config.txtpb", "erofs", "Read-only file system"}}) {
    const int64_t number = find_call(calls, failing.call, failing.file);
    ASSERT_GT(number, 0) << failing.call << " " << failing.file;
    const Result result = train(faults("out", number, failing.action));
    EXPECT_EQ(result.status, kData) << failing.call << " " << result.errors;
    EXPECT_TRUE(says(result.errors, failing.reason));
    EXPECT_TRUE(says(result.errors, failing.file));
  }
}

TEST_F(FileFaultsTest, AFullDiskStaysFull) {
  const std::vector<FileCall> calls = calls_of_training();
  const int64_t open = find_call(calls, "open", "metrics.jsonl");
  ASSERT_GT(open, 0);
  const Result result = train(faults("out", open, "enospc_from"));
  EXPECT_EQ(result.status, kData);
  EXPECT_TRUE(says(result.errors, "metrics.jsonl: No space left on device"));
  // Calls that need no space still succeed: the partial file is removed, and with it the folder of
  // the run, which holds nothing else yet.
  const int64_t write = find_call(calls, "write", "config.txtpb.partial-");
  EXPECT_EQ(train(faults("out", write, "enospc_from")).status, kData);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(FileFaultsTest, WrongSettingsAreRefused) {
  EXPECT_EQ(train(faults("out", 0, "kill")).status, 99);
  const Result result = train(faults("out", 1, "kil"));
  EXPECT_EQ(result.status, 99);
  EXPECT_TRUE(says(result.errors, "FILE_FAULTS_ACTION=kil is no action"));
}

}  // namespace
}  // namespace lockstep::launcher

#include "train/report/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

void put(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  put_file(path, content);
}

TEST(Environment, SaysWhereAndHowTheProgramRuns) {
  const auto json = nlohmann::json::parse(environment_json(
      {{"lockstep", "train", "\xff.txtpb"}, "1.2.3", 2, kCPU, {{"onednn", "2.6.3"}}}));
  EXPECT_EQ(json["version"], "1.2.3");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["command_line"].size(), 3u);
  EXPECT_EQ(json["command_line"][1], "train");
  EXPECT_EQ(json["libraries"]["onednn"], "2.6.3");
  EXPECT_TRUE(json["libraries"].contains("zlib"));
  EXPECT_GE(json["cores_allowed"], 1);
  EXPECT_GT(json["memory_allowed_bytes"], 1 << 20);
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof(host) - 1), 0);
  EXPECT_EQ(json["host"], host);
  EXPECT_EQ(json["working_directory"], std::filesystem::current_path().string());
  EXPECT_EQ(json["start_time"].get<std::string>().size(), 24u);  // 2026-01-31T12:34:56+0100
  EXPECT_TRUE(json["arithmetic"].contains("kernels"));
  EXPECT_TRUE(json["arithmetic"].contains("oneDNN"));
  for (const char* name : {"commit", "os", "kernel", "cpu", "isa", "compiler"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
}

TEST(GitCommit, IsFoundFromAnyFolderOfTheTree) {
  const TemporaryDirectory folder;
  put(folder / ".git/HEAD", "ref: refs/heads/main\n");
  put(folder / ".git/refs/heads/main", kCommit + "\n");
  std::filesystem::create_directories(folder / "a/b");
  EXPECT_EQ(git_commit(folder.path()), kCommit);
  EXPECT_EQ(git_commit(folder / "a/b"), kCommit);
}

TEST(GitCommit, IsFoundInPackedReferences) {
  const TemporaryDirectory folder;
  put(folder / ".git/HEAD", "ref: refs/heads/main\n");
  put(folder / ".git/packed-refs", "# pack-refs with: peeled\n" + std::string(40, 'f') +
                                       " refs/heads/other/refs/heads/main\n" + kCommit +
                                       " refs/heads/main\n");
  EXPECT_EQ(git_commit(folder.path()), kCommit);
}

TEST(GitCommit, IsFoundInAWorktreeAndWhenDetached) {
  const TemporaryDirectory folder;
  put(folder / "main/.git/worktrees/side/HEAD", "ref: refs/heads/side\n");
  put(folder / "main/.git/worktrees/side/commondir", "../..\n");
  put(folder / "main/.git/refs/heads/side", kCommit + "\n");
  put(folder / "side/.git", "gitdir: " + (folder / "main/.git/worktrees/side").string() + "\n");
  EXPECT_EQ(git_commit(folder / "side"), kCommit);
  put(folder / "main/.git/worktrees/side/HEAD", std::string(40, 'a') + "\n");
  EXPECT_EQ(git_commit(folder / "side"), std::string(40, 'a'));
}

TEST(GitCommit, IsAbsentWithoutACommit) {
  const TemporaryDirectory folder;
  EXPECT_EQ(git_commit(folder.path()), std::nullopt);
  put(folder / ".git/HEAD", "ref: refs/heads/main\n");
  EXPECT_EQ(git_commit(folder.path()), std::nullopt);
  put(folder / ".git/HEAD", "not a commit\n");
  EXPECT_EQ(git_commit(folder.path()), std::nullopt);
}

}  // namespace
}  // namespace lockstep::train

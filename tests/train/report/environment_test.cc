#include "train/report/environment.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

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

TEST(GitCommit, HasFortyHexadecimalDigitsOrMore) {
  const TemporaryDirectory folder;
  const auto found = [&](const std::string& head) {
    put(folder / ".git/HEAD", head + "\n");
    return git_commit(folder.path());
  };
  EXPECT_EQ(found(std::string(39, 'a')), std::nullopt);
  EXPECT_EQ(found(std::string(40, 'a')), std::string(40, 'a'));
  EXPECT_EQ(found(std::string(64, 'b')), std::string(64, 'b'));
  EXPECT_EQ(found(std::string(39, 'a') + "g"), std::nullopt);
}

TEST(Environment, NamesTheVersionsOfItsLibraries) {
  const auto json = nlohmann::json::parse(environment_json(
      {.command_line = {}, .version = "", .threads = 1, .libraries = {{"zlib", "not the one"}}}));
  EXPECT_TRUE(json["version"].is_null());
  EXPECT_FALSE(json.contains("injected_fault"));
  const std::string parts[] = {std::to_string(FMT_VERSION / 10000),
                               std::to_string(FMT_VERSION / 100 % 100),
                               std::to_string(FMT_VERSION % 100)};
  EXPECT_EQ(json["libraries"]["fmt"], parts[0] + "." + parts[1] + "." + parts[2]);
  EXPECT_EQ(json["libraries"]["nlohmann_json"],
            nlohmann::json::meta()["version"]["string"].get<std::string>());
  EXPECT_EQ(json["libraries"]["zlib"].get<std::string>().find("not"), std::string::npos)
      << "what is known here goes before what is told";
  for (const char* name : {"bzip2", "glibc", "liblzma"}) {
    EXPECT_FALSE(json["libraries"][name].get<std::string>().empty()) << name;
  }
}

}  // namespace
}  // namespace lockstep::train

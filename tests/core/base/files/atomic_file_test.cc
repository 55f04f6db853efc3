#include "core/base/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using train::file_content;
using train::message_of;
using train::put_file;
using train::says;
using train::TemporaryDirectory;

size_t entries(const std::filesystem::path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, AppearsOnlyWhenPublished) {
  const TemporaryDirectory folder;
  AtomicFile file(folder / "a");
  file.write(std::as_bytes(std::span("text", 4)));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  file.publish();
  EXPECT_EQ(file_content(folder / "a"), "text");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, AnUnpublishedFileLeavesNothingAndKeepsTheOldContents) {
  const TemporaryDirectory folder;
  put_file(folder / "a", "old");
  { AtomicFile(folder / "a").write(std::as_bytes(std::span("new", 3))); }
  EXPECT_EQ(file_content(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, AFailedWriteKeepsTheOldContentsAndNamesTheReason) {
  const TemporaryDirectory folder;
  put_file(folder / "a", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      message_of<DataError>([&] { write_text(folder / "a", std::string(10000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(says(message, "File too large"));
  EXPECT_EQ(file_content(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, ADestinationThatIsAFolderIsRefused) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "a");
  EXPECT_TRUE(
      says(message_of<DataError>([&] { write_text(folder / "a", "x"); }), "Is a directory"));
  EXPECT_EQ(entries(folder.path()), 1u);
}

}  // namespace
}  // namespace lockstep

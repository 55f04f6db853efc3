#include "compile/native/library_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/base/files/atomic_file.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using train::TemporaryDirectory;

class LibraryCacheTest : public ::testing::Test {
 protected:
  /// Adds an entry with these bytes.
  fs::path add(const ContentHash& key, const std::string& bytes, const std::string& what = "a") {
    const fs::path library = temporary_.path() / "compiled.so";
    write_text(library, bytes);
    return cache_.add(key, library, what);
  }

  TemporaryDirectory temporary_;
  LibraryCache cache_{temporary_.path() / "cache"};
  void SetUp() override { fs::create_directory(cache_.folder()); }
};

std::string content(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(LibraryCacheTest, FindsWhatWasAddedUnderItsKey) {
  const fs::path file = add({1, 2}, "library");
  EXPECT_EQ(cache_.find({1, 2}), file);
  EXPECT_EQ(cache_.find({2, 1}), std::nullopt);
  EXPECT_TRUE(content(file).starts_with("library"));
}

TEST_F(LibraryCacheTest, DoesNotFindADamagedEntryAndTakesItAgain) {
  const fs::path file = add({1, 2}, "library");
  const std::string whole = content(file);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    // What the entry says of itself is no part of the library.
    if (at >= whole.size() - 2) continue;
    std::ofstream(file) << damaged;
    EXPECT_EQ(cache_.find({1, 2}), std::nullopt) << at;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(file) << whole.substr(0, size);
    EXPECT_EQ(cache_.find({1, 2}), std::nullopt) << size;
  }
  EXPECT_THAT(cache_.list(), ElementsAre(Field(&LibraryCache::Entry::what, "damaged")));
  add({1, 2}, "library");
  EXPECT_TRUE(cache_.find({1, 2}));
}

TEST_F(LibraryCacheTest, TellsWhatItHolds) {
  EXPECT_THAT(cache_.list(), IsEmpty());
  const fs::path second = add({2, 0}, "22", "loop of\nmul");
  const fs::path first = add({1, 0}, "1", "loop of add");
  const auto entries = cache_.list();
  ASSERT_THAT(entries, SizeIs(2));
  const auto& added = entries[entries[0].file == first ? 0 : 1];
  EXPECT_EQ(added.what, "loop of add");
  EXPECT_EQ(added.bytes, fs::file_size(first));
  EXPECT_EQ(entries[entries[0].file == second ? 0 : 1].what, "loop of mul");
  EXPECT_THAT(LibraryCache(temporary_.path() / "none").list(), IsEmpty());
}

void set_age(const fs::path& file, int seconds) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
}

TEST_F(LibraryCacheTest, PruneRemovesWhatWasNotUsedForLong) {
  const fs::path old = add({1, 0}, "1"), used = add({2, 0}, "2"), young = add({3, 0}, "3");
  set_age(old, 1000);
  set_age(used, 1000);
  EXPECT_TRUE(cache_.find({2, 0}));
  EXPECT_THAT(cache_.prune(std::chrono::seconds(900)),
              ElementsAre(Field(&LibraryCache::Entry::file, old)));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(used));
  EXPECT_TRUE(fs::exists(young));
}

TEST_F(LibraryCacheTest, PruneRemovesDamagedEntries) {
  const fs::path file = add({1, 0}, "1");
  std::ofstream(file) << "x";
  EXPECT_THAT(cache_.prune(std::chrono::hours(1)), SizeIs(1));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(LibraryCacheTest, WorkplacesOfProcessesThatEndedGoWithTheNext) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)cache_.make_workplace();
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto workplaces = [&] {
    return std::distance(fs::directory_iterator(cache_.folder()), fs::directory_iterator());
  };
  ASSERT_EQ(workplaces(), 1);
  const fs::path mine = cache_.make_workplace();
  EXPECT_TRUE(fs::is_directory(mine));
  EXPECT_EQ(workplaces(), 1);
  cache_.prune(std::chrono::hours(1));
  EXPECT_EQ(workplaces(), 1);
}

TEST_F(LibraryCacheTest, RefusesAFolderThatOthersMayWriteTo) {
  ASSERT_EQ(::chmod(cache_.folder().c_str(), 0775), 0);
  expect_error<Error>([&] { LibraryCache other(cache_.folder()); }, "nobody else may write to");
  expect_error<Error>([&] { LibraryCache file(add({1, 0}, "1")); }, "is no folder");
}

TEST(LibraryCacheFolder, IsChosenByTheEnvironment) {
  const EnvironmentVariable home("HOME", "/home/me");
  const EnvironmentVariable cache("XDG_CACHE_HOME", nullptr);
  const EnvironmentVariable chosen("LOCKSTEP_CACHE_DIR", nullptr);
  EXPECT_EQ(LibraryCache::usual_folder(), "/home/me/.cache/lockstep");
  {
    const EnvironmentVariable caches("XDG_CACHE_HOME", "/var/cache");
    EXPECT_EQ(LibraryCache::usual_folder(), "/var/cache/lockstep");
    const EnvironmentVariable ours("LOCKSTEP_CACHE_DIR", "/fast/disk");
    EXPECT_EQ(LibraryCache::usual_folder(), "/fast/disk");
  }
  const EnvironmentVariable homeless("HOME", "");
  EXPECT_EQ(LibraryCache::usual_folder(), std::nullopt);
}

}  // namespace
}  // namespace lockstep::compiler

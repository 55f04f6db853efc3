#include "compile/native/native_build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "compile/native/library_cache.h"
#include "compile/native/native_library.h"
#include "core/base/files/atomic_file.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;
using train::TemporaryDirectory;

NativeSource returning(int number) {
  return {.text = "extern \"C\" [[gnu::visibility(\"default\")]] int f() { return " +
                  std::to_string(number) + "; }\n",
          .flags = {},
          .what = "f"};
}

int call(const NativeFile& file) {
  return reinterpret_cast<int (*)()>(NativeLibrary(file.path()).find("f"))();
}

class NativeBuildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_toolchain({})) GTEST_SKIP() << "there is no C++ compiler";
  }
  std::vector<LibraryCache::Entry> entries() const { return LibraryCache(folder_).list(); }

  TemporaryDirectory temporary_;
  const fs::path folder_ = temporary_.path() / "cache";
  EnvironmentVariable variable_{"LOCKSTEP_CACHE_DIR", folder_.c_str()};
};

TEST_F(NativeBuildTest, MakesALibraryAndKeepsIt) {
  EXPECT_EQ(call(build_native(returning(7))), 7);
  EXPECT_EQ(call(build_native(returning(8))), 8);
  EXPECT_THAT(entries(), SizeIs(2));
  expect_error<Error>([] { (void)NativeLibrary(build_native(returning(7)).path()).find("g"); },
                      "has no g");
}

TEST_F(NativeBuildTest, TakesALibraryThatWasMadeBefore) {
  const fs::path compiler = temporary_.path() / "cc";
  write_text(compiler, "#!/bin/sh\nif [ $# = 1 ]; then echo 1; else exec c++ \"$@\"; fi\n");
  fs::permissions(compiler, fs::perms::owner_all);
  const EnvironmentVariable chosen("CXX", compiler.c_str());
  EXPECT_EQ(call(build_native(returning(7))), 7);
  write_text(compiler, "#!/bin/sh\nif [ $# = 1 ]; then echo 1; else exit 1; fi\n");
  fs::permissions(compiler, fs::perms::owner_all);
  EXPECT_EQ(call(build_native(returning(7))), 7);
  expect_error<Error>([] { (void)build_native(returning(8)); }, "ended with status 1");
  // Another version of the compiler may make other libraries.
  write_text(compiler, "#!/bin/sh\nif [ $# = 1 ]; then echo 2; else exit 1; fi\n");
  fs::permissions(compiler, fs::perms::owner_all);
  expect_error<Error>([] { (void)build_native(returning(7)); }, "ended with status 1");
}

TEST_F(NativeBuildTest, MakesADamagedLibraryAgain) {
  (void)build_native(returning(7));
  write_text(entries().at(0).file, "damaged");
  EXPECT_EQ(call(build_native(returning(7))), 7);
  EXPECT_EQ(entries().at(0).what, "f");
}

TEST_F(NativeBuildTest, DoesWithoutACacheThatCannotBeUsed) {
  write_text(folder_, "a file");
  EXPECT_EQ(call(build_native(returning(7))), 7);
  EXPECT_TRUE(fs::is_regular_file(folder_));
}

TEST_F(NativeBuildTest, OfSeveralThatNeedItOneCompiles) {
  const fs::path compiler = temporary_.path() / "cc", calls = temporary_.path() / "calls";
  write_text(compiler, "#!/bin/sh\nif [ $# = 1 ]; then echo 1; else echo c >> " + calls.string() +
                           "; exec c++ \"$@\"; fi\n");
  fs::permissions(compiler, fs::perms::owner_all);
  const EnvironmentVariable chosen("CXX", compiler.c_str());
  std::array<std::optional<NativeFile>, 4> files;
  std::vector<std::thread> threads;
  for (std::optional<NativeFile>& file : files) {
    threads.emplace_back([&file] { file.emplace(build_native(returning(7))); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fs::file_size(calls), 2U);
  // By one thread: ThreadSanitizer does not see the lock of the system's loader.
  for (const std::optional<NativeFile>& file : files) EXPECT_EQ(call(*file), 7);
}

TEST_F(NativeBuildTest, LeavesNothingButLibrariesAndTheLock) {
  (void)build_native(returning(7));
  expect_error<Error>([] { (void)build_native({.text = "no C++", .flags = {}, .what = ""}); },
                      "ended with status");
  std::vector<std::string> names;
  for (const auto& each : fs::directory_iterator(folder_)) {
    names.push_back(each.path().extension().string());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(".so", ""));
}

TEST_F(NativeBuildTest, WithoutACompilerSaysWhatToDo) {
  const EnvironmentVariable path("PATH", temporary_.path().c_str());
  const EnvironmentVariable chosen("CXX", nullptr);
  expect_error<Error>([] { (void)build_native(returning(7)); }, "there is no C++ compiler");
}

}  // namespace
}  // namespace lockstep::compiler

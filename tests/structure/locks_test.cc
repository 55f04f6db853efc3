// Every lock is one that clang's thread-safety analysis knows (core/base/thread_annotations.h), and
// says what it guards: in an annotation, or in a comment where no annotation can say it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/structure/source_tree.h"

namespace lockstep::structure {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Whether the rules hold for a file. Tests may use the standard's locks.
bool has_annotated_locks(const std::string& path) {
  static const std::set<std::string> layers = {"core",  "kernels",  "autograd", "compile",
                                               "dist",  "nn",       "data",     "configs",
                                               "train", "launcher", "profile"};
  const bool wraps = path == "core/base/mutex.h" || path == "core/base/cond_var.h" ||
                     path == "core/base/shared_mutex.h";
  return !wraps && (layers.contains(top_folder(path)) || path.starts_with("examples/"));
}

/// Whether a line may name a lock: regular expressions are slow.
bool may_name_lock(const std::string& line) {
  static const std::vector<std::string> words = {"utex", "lock", "Lock", "condition_variable"};
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return line.find(word) != std::string::npos; });
}

bool is_comment(const std::string& line) {
  const size_t first = line.find_first_not_of(' ');
  return first != std::string::npos && line.compare(first, 2, "//") == 0;
}

/// "PATH:LINE: what is wrong" for each lock in a file that breaks a rule.
std::vector<std::string> wrong_locks(const std::string& path, const std::string& text) {
  static const std::regex unknown(
      R"(std::((recursive_|shared_|timed_)*mutex|(scoped|unique|shared)_lock|lock_guard)\b)"
      R"(|std::condition_variable|\bpthread_mutex)");
  static const std::regex declared(
      R"(^\s*((static|mutable|constinit|inline)\s+)*)"
      R"((Mutex|SharedMutex|RecursiveMutex|SpinLock)\s+(\w+)\s*(=[^;]*|\{\})?;(.*)$)");
  std::vector<std::string> wrong;
  std::istringstream lines(text);
  std::string before;
  int number = 0;
  for (std::string line; std::getline(lines, line); before = line) {
    ++number;
    if (!may_name_lock(line)) continue;
    const std::string place = path + ":" + std::to_string(number) + ": ";
    if (!is_comment(line) && std::regex_search(line, unknown)) wrong.push_back(place + "unknown");
    std::smatch lock;
    if (!std::regex_match(line, lock, declared)) continue;
    const std::regex annotation("(GUARDED_BY|REQUIRES)\\(([\\w.>-]*(\\.|->))?" + lock[4].str() +
                                "\\)");
    const bool says = lock[6].str().find("//") != std::string::npos || is_comment(before) ||
                      std::regex_search(text, annotation);
    if (!says) wrong.push_back(place + lock[4].str() + " guards nothing");
  }
  return wrong;
}

TEST(Locks, AreKnownToTheAnalysisAndSayWhatTheyGuard) {
  std::vector<std::string> wrong;
  for (const SourceFile& file : read_source_tree(LOCKSTEP_SOURCE_DIR)) {
    if (!has_annotated_locks(file.path)) continue;
    for (std::string& each : wrong_locks(file.path, repository_text(file.path))) {
      wrong.push_back(std::move(each));
    }
  }
  EXPECT_TRUE(wrong.empty()) << join(wrong);
}

// The rule above passes on a clean tree; these show that it fails on a wrong one.

TEST(Locks, ALockOfTheStandardIsNamed) {
  EXPECT_THAT(wrong_locks("core/a.cc",
                          "  std::mutex mutex;  ///< of a\n"
                          "  // std::mutex has no annotations\n"
                          "  const std::lock_guard lock(mutex);\n"
                          "  std::once_flag once;\n"),
              ElementsAre("core/a.cc:1: unknown", "core/a.cc:3: unknown"));
}

TEST(Locks, ALockThatGuardsNothingIsNamed) {
  EXPECT_THAT(wrong_locks("core/a.h",
                          "  mutable Mutex mutex_;\n  SpinLock lock_;\n"
                          "  int count LS_GUARDED_BY(lock_) = 0;\n"),
              ElementsAre("core/a.h:1: mutex_ guards nothing"));
}

TEST(Locks, AnAnnotationOrACommentSaysWhatALockGuards) {
  EXPECT_THAT(wrong_locks("core/a.h",
                          "  Mutex mutex_;\n  int a LS_GUARDED_BY(mutex_);\n"
                          "  Mutex making_;  ///< held to make one\n"
                          "/// Guards the numbers of all runs.\nconstinit Mutex g_numbers;\n"
                          "  std::map<int, int> b LS_GUARDED_BY(state->mutex);\n  Mutex mutex;\n"),
              IsEmpty());
}

}  // namespace
}  // namespace lockstep::structure

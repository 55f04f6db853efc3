#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/launcher/program.h"

namespace lockstep::launcher {

/// One call on a file, as logged by libfile_faults.so.
struct FileCall {
  int64_t number = 0;
  std::string name;  ///< such as "write"
  std::string path;  ///< absolute
};

/// Leaves out writes of a file that come between two others of the same file: they differ only in
/// how much of it is written.
inline std::vector<FileCall> without_middle_writes(const std::vector<FileCall>& calls) {
  std::vector<FileCall> kept;
  for (const FileCall& call : calls) {
    const auto is_like = [&](size_t back) {
      if (kept.size() < back) return false;
      const FileCall& earlier = kept[kept.size() - back];
      return call.name == "write" && earlier.name == "write" && earlier.path == call.path;
    };
    if (is_like(1) && is_like(2)) kept.pop_back();
    kept.push_back(call);
  }
  return kept;
}

/// Runs the program with a fault in one of its calls on the files of a folder. The faults and the
/// calls that count are listed in tests/faults/file_faults.cc. Skips its tests in builds without
/// that library: with sanitizers and static builds.
class FileFaults : public Program {
 protected:
  void SetUp() override {
    if (library() == nullptr) GTEST_SKIP() << "this build has no libfile_faults.so";
  }

  /// Variables for `run`: call number `at` (from 1) on `folder`, relative to the test's, fails with
  /// `action`.
  std::string faults(std::string_view folder, int64_t at, std::string_view action) const {
    return fmt::format("{} FILE_FAULTS_AT={} FILE_FAULTS_ACTION={}", watching(folder), at, action);
  }
  /// Variables for `run`: logs the calls on `folder` to the file .calls, for `file_calls`.
  std::string counting(std::string_view folder) const {
    return fmt::format("{} FILE_FAULTS_COUNT='{}'", watching(folder), list().string());
  }
  /// The calls of the last program under `counting`, in order. Clears the log.
  std::vector<FileCall> file_calls() const {
    std::istringstream lines(file_content(list()));
    std::vector<FileCall> calls;
    for (FileCall call;
         lines >> call.number >> call.name >> std::ws && std::getline(lines, call.path);) {
      calls.push_back(call);
    }
    std::filesystem::remove(list());
    return calls;
  }
  /// Number of the first call `name` on a file whose name starts with `file`, or 0.
  static int64_t find_call(const std::vector<FileCall>& calls, std::string_view name,
                           std::string_view file) {
    const auto found = std::ranges::find_if(calls, [&](const FileCall& call) {
      return call.name == name &&
             std::filesystem::path(call.path).filename().string().starts_with(file);
    });
    return found == calls.end() ? 0 : found->number;
  }

 private:
  static const char* library() {
#ifdef LOCKSTEP_FILE_FAULTS
    return LOCKSTEP_FILE_FAULTS;
#else
    return nullptr;
#endif
  }
  std::string watching(std::string_view folder) const {
    return fmt::format("LD_PRELOAD='{}' FILE_FAULTS_FOLDER='{}'", library(),
                       (folder_ / folder).string());
  }
  std::filesystem::path list() const { return folder_ / ".calls"; }
};

}  // namespace lockstep::launcher

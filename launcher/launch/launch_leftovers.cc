#include "launcher/launch/launch_leftovers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_number.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

bool is_ours(const fs::path& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && found.st_uid == ::geteuid();
}

/// Returns the upper half of the job number, with which contact.txt begins:
/// "1857421312.0;tcp://...".
std::optional<uint32_t> job_family(const fs::path& session) {
  constexpr uint64_t kMostContactBytes = 65536;
  try {
    const std::string text = read_whole_file(session / "contact.txt", kMostContactBytes);
    const size_t dot = text.find('.');
    if (dot == text.npos) return std::nullopt;
    const std::optional<uint32_t> job = parse_number<uint32_t>(text.substr(0, dot));
    return job ? std::optional(*job >> 16) : std::nullopt;
  } catch (const FileError&) {
    return std::nullopt;
  }
}

/// Returns the upper half of JOB, in hexadecimal, in vader_segment.HOST.UID.JOB.RANK. HOST may
/// contain dots.
std::optional<uint32_t> family_of_segment(const std::string& name) {
  if (!name.starts_with("vader_segment.")) return std::nullopt;
  const size_t rank = name.rfind('.');
  const size_t job = name.rfind('.', rank - 1);
  if (rank == name.npos || job == name.npos || job + 1 >= rank) return std::nullopt;
  const std::string digits = name.substr(job + 1, rank - job - 1);
  if (digits.size() > 8 || digits.find_first_not_of("0123456789abcdef") != digits.npos) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(std::stoul(digits, nullptr, 16)) >> 16;
}

/// The files of `folder` that processes of this user have mapped. Those that the system protects
/// from their own user, as after a change of user, are no ranks and are left out.
std::set<std::string> mapped_files(const std::string& folder) {
  std::set<std::string> mapped;
  std::error_code error;
  fs::directory_iterator entry("/proc", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!parse_number<pid_t>(entry->path().filename().string()) || !is_ours(entry->path())) {
      continue;
    }
    std::string text;
    try {
      text = read_whole_file(entry->path() / "maps");
    } catch (const FileError&) {
      continue;
    }
    for (size_t at = 0; (at = text.find(folder + "/", at)) != text.npos;) {
      const size_t end = std::min(text.find('\n', at), text.size());
      mapped.insert(text.substr(at, end - at));
      at = end;
    }
  }
  return mapped;
}

bool is_older(const fs::path& path, std::chrono::seconds age) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 &&
         ::time(nullptr) - found.st_ctim.tv_sec >= age.count();
}

void remove_segments(uint32_t family, const std::string& folder) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (family_of_segment(entry.path().filename().string()) == family && is_ours(entry.path())) {
      files.push_back(entry.path());
    }
  }
  for (const fs::path& file : files) fs::remove(file, ignored);
}

}  // namespace

void remove_stale_segments(const std::string& host, const std::string& shared_memory,
                           std::chrono::seconds least_age) {
  const std::string begin = fmt::format("vader_segment.{}.{}.", host, ::geteuid());
  std::error_code ignored;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(shared_memory, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(begin) && family_of_segment(name) && is_ours(entry->path()) &&
        is_older(entry->path(), least_age)) {
      files.push_back(entry->path());
    }
  }
  if (files.empty()) return;
  const std::set<std::string> mapped = mapped_files(shared_memory);
  for (const fs::path& file : files) {
    if (!mapped.contains(file.string())) fs::remove(file, ignored);
  }
}

void remove_leftovers(pid_t mpirun, const std::vector<std::string>& folders,
                      const std::string& shared_memory) {
  const std::string user = fmt::format(".{}", ::geteuid());
  std::error_code ignored;
  for (const std::string& folder : folders) {
    std::vector<fs::path> sessions;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      const fs::path session = entry.path() / fmt::format("pid.{}", mpirun);
      if (name.starts_with("ompi.") && name.ends_with(user) && is_ours(session)) {
        sessions.push_back(session);
      }
    }
    for (const fs::path& session : sessions) {
      if (const auto family = job_family(session)) remove_segments(*family, shared_memory);
      fs::remove_all(session, ignored);
      ::rmdir(session.parent_path().c_str());  // fails while it holds sessions of other jobs
    }
  }
}

}  // namespace lockstep::launcher

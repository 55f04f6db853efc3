#include "launcher/launch/launch_leftovers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "core/base/check.h"

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
  std::ifstream file(session / "contact.txt");
  uint32_t job = 0;
  char dot = 0;
  if (!(file >> job >> dot) || dot != '.') return std::nullopt;
  return job >> 16;
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

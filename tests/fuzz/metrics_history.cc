#include "train/report/metrics_history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"
#include "train/page/curves.h"
#include "train/page/file_lines.h"
#include "train/page/metrics_reader.h"

namespace lockstep::fuzz {
namespace {

/// An in-memory file with a path, which read_metrics needs.
class MemoryFile {
 public:
  explicit MemoryFile(Input content) : fd_(::memfd_create("fuzzed", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    for (Input rest = content; !rest.empty();) {
      const ssize_t written = ::write(fd_, rest.data(), rest.size());
      if (written < 0) {
        const int code = errno;
        ::close(fd_);
        throw std::system_error(code, std::generic_category(), "write");
      }
      rest = rest.subspan(static_cast<size_t>(written));
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_;
};

/// Reads a file for a run's page, which leaves out what it cannot read and refuses nothing.
void read_for_page(const std::string& path) {
  train::RunRecord record;
  train::MetricsReader reader(record, {.points = 16, .events = 100});
  train::for_each_line(path,
                       [&](std::string_view line, int64_t number) { reader.read(line, number); });
  reader.finish();
  for (const auto& [member, series] : record.series) {
    const std::vector<train::StepSeries::Point> points = series.points();
    const auto falls = [](const auto& a, const auto& b) { return b.step <= a.step; };
    require(std::ranges::adjacent_find(points, falls) == points.end(), "the steps of a curve rise");
  }
  train::curves_json({&record, 1});
}

}  // namespace

Outcome fuzz_metrics_history(Input input) {
  const MemoryFile file(input);
  read_for_page(file.path());
  std::vector<train::MetricsRecord> records;
  try {
    records = train::read_metrics(file.path());
  } catch (const DataError&) {
    return Outcome::kRefused;
  }
  require(!records.empty(), "a history that is accepted holds a step");
  require(std::ssize(records) <= std::ranges::count(input, '\n'), "a line holds one step at most");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz

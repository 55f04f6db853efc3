#include "train/report/run_start.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "core/base/json_line.h"
#include "dist/group/agreement.h"
#include "dist/group/transport_group.h"
#include "train/report/metrics.h"

namespace lockstep::train {
namespace {

std::string time_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(std::time(nullptr)));
}

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Tells all ranks the leader's folder; other ranks pass "".
void share_folder(dist::ProcessGroup& group, const std::string& folder) {
  const std::string told = dist::all_gather_texts(group, folder, dist::at_start(group)).front();
  group.set_flight_folder(told);
}

}  // namespace

RunStart::RunStart(const RunDirectory& directory, dist::ProcessGroup* group)
    : file_(directory.starts()), ranks_(group == nullptr ? 1 : group->size()) {
  if (ranks_ == 1) return;
  id_ = group->start_id();
  hosts_ = dist::hosts_of(*group);
  // Absolute: the other ranks may have been started in other folders.
  const std::filesystem::path folder = std::filesystem::absolute(directory.flight());
  // Before another rank can fail because of what it is told here.
  group->set_flight_folder(folder);
  share_folder(*group, folder.string());
}

void RunStart::follow(dist::ProcessGroup& group) { share_folder(group, ""); }

void RunStart::begin() {
  if (id_.empty()) return;
  MetricsWriter starts(file_);
  JsonLine line;
  line.add("start", id_).add("ranks", ranks_).add("begun", time_now()).add("at_ns", now_ns());
  if (std::ranges::any_of(hosts_, [](int host) { return host != 0; })) {
    line.add("hosts", std::vector<double>(hosts_.begin(), hosts_.end()));
  }
  starts.write(line);
  starts.close();
}

void RunStart::end(std::string_view how) noexcept {
  if (id_.empty()) return;
  try {
    MetricsWriter starts(file_);
    starts.write(JsonLine()
                     .add("start", id_)
                     .add("ended", time_now())
                     .add("at_ns", now_ns())
                     .add("how", how));
    starts.close();
  } catch (const std::exception&) {
    // Then `lockstep trace` says that the start has not ended.
  }
}

}  // namespace lockstep::train

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/gzip.h"
#include "launcher/command_line.h"
#include "launcher/verbs.h"
#include "profile/chrome_trace.h"
#include "profile/folded_stacks.h"
#include "profile/machine_peaks.h"
#include "profile/ranks.h"
#include "profile/table.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

struct ProfileOptions {
  std::string path;
  int rank = 0;
  int cycle = 1;
  std::string sort = "self";
  std::string group = "name";
  int64_t top = 25;
  bool json = false;
  std::string stacks;
  std::string merged;
};

/// The traces of a cycle of a run, in its directory or in its folder profile.
std::vector<fs::path> trace_files(const fs::path& path, int cycle) {
  if (!fs::is_directory(path)) return {path};
  const std::string ending = cycle == 1 ? ".json.gz" : fmt::format(".cycle-{}.json.gz", cycle);
  std::vector<fs::path> files;
  for (const fs::path& folder : {path / "profile", path}) {
    if (!fs::is_directory(folder) || !files.empty()) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      const size_t dot = name.find('.');
      if (name.starts_with("trace-") && dot != name.npos && name.substr(dot) == ending) {
        files.push_back(entry.path());
      }
    }
  }
  LS_CHECK(!files.empty(), DataError,
           "[profile] {} holds no trace of cycle {}: expected files trace-RANK{} there or in its "
           "folder profile. `lockstep train --profile` writes them.",
           path.string(), cycle, ending);
  return files;
}

/// The rates that the run has measured at its end, if it came to it.
profile::MachinePeaks peaks_of(const fs::path& path) {
  const fs::path folder = fs::is_directory(path) ? path : path.parent_path();
  for (const fs::path& file : {folder / "profile/machine.json", folder / "machine.json"}) {
    if (fs::exists(file)) return profile::read_peaks(file);
  }
  return {};
}

void show(const ProfileOptions& options) {
  std::vector<profile::Profile> profiles;
  for (const fs::path& file : trace_files(options.path, options.cycle)) {
    profiles.push_back(profile::read_trace_file(file));
  }
  std::ranges::sort(profiles, {}, [](const profile::Profile& each) { return each.rank.rank; });
  profile::align(profiles);
  if (!options.merged.empty()) {
    const std::string text = profile::merged_trace_json(profiles);
    AtomicFile file(options.merged);
    file.write(gzipped(std::as_bytes(std::span(text))));
    file.publish();
  }
  const auto of_rank = std::ranges::find(
      profiles, options.rank, [](const profile::Profile& each) { return each.rank.rank; });
  LS_CHECK(of_rank != profiles.end() || profiles.size() == 1, DataError,
           "[profile] {} holds no trace of rank {}: expected one of the {} ranks there.",
           options.path, options.rank, profiles.size());
  const profile::Profile& shown = of_rank != profiles.end() ? *of_rank : profiles.front();
  if (!options.stacks.empty()) write_text(options.stacks, profile::folded_stacks(shown));
  const profile::MachinePeaks peaks = peaks_of(options.path);
  const profile::TableOptions table = {.group = profile::parse_group(options.group),
                                       .sort = profile::parse_sort(options.sort),
                                       .top = options.top};
  if (options.json) {
    fmt::print("{}", profile::table_json(shown, peaks, table));
    return;
  }
  fmt::print("{}", profile::table_text(shown, peaks, table));
  if (profiles.size() > 1)
    fmt::print("\n{}", profile::steps_text(profile::steps_of_ranks(profiles)));
  const bool is_folder = fs::is_directory(options.path);
  if (is_folder && std::cmp_less(profiles.size(), shown.rank.size)) {
    fmt::print("\nTraces of {} of {} ranks are there; the others are not in the figures.\n",
               profiles.size(), shown.rank.size);
  }
}

}  // namespace

void add_profile(const Verb& app) {
  auto options = std::make_shared<ProfileOptions>();
  const Verb verb = app.verb("profile", "Show what `lockstep train --profile` has recorded");
  verb.option("run", options->path, "Run directory, or a trace-RANK.json.gz").required();
  verb.option("--sort", options->sort, "Column to sort by")
      .one_of(profile::sort_names())
      .shows_default();
  verb.option("--by", options->group, "What the calls of a row have in common besides their name")
      .one_of(profile::group_names())
      .shows_default();
  verb.option("--top", options->top, "Rows; 0: all").not_negative().shows_default();
  verb.option("--rank", options->rank, "Rank to show").not_negative().shows_default();
  verb.option("--cycle", options->cycle, "Cycle of the schedule").positive().shows_default();
  verb.flag("--json", options->json, "A JSON object for each row instead of a table");
  verb.option("--stacks", options->stacks,
              "Write folded stacks to this file, for flame graph programs");
  verb.option("--merge", options->merged,
              "Write one trace of all ranks to this file (.json.gz), their clocks aligned");
  verb.runs([options] { show(*options); });
}

}  // namespace lockstep::launcher

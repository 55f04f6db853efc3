#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "dist/flight/flight_analysis.h"
#include "launcher/command_line.h"
#include "launcher/verbs.h"
#include "train/report/run_start.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The last start of a run directory.
struct StartOfRun {
  std::string directory;
  train::LastStart start;
};

/// What the command line's files and folders hold.
struct Traced {
  std::vector<dist::FlightLog> logs;  ///< by rank
  std::vector<StartOfRun> starts;
};

/// Returns the logs in a folder, or in its subfolder `flight` if it is a run directory; or `path`
/// itself if it is a file.
std::vector<fs::path> log_files(const fs::path& path) {
  std::vector<fs::path> files;
  if (!fs::is_directory(path)) return {path};
  for (const fs::path& folder : {path, path / "flight"}) {
    if (!fs::is_directory(folder)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("flight.rank") && name.ends_with(".json")) files.push_back(entry.path());
    }
  }
  return files;
}

Traced read_all(const std::vector<std::string>& paths) {
  Traced traced;
  for (const std::string& path : paths) {
    const std::vector<fs::path> files = log_files(path);
    std::optional<train::LastStart> start;
    if (fs::is_directory(path)) start = train::read_last_start(path);
    LS_CHECK(start || !files.empty(), DataError,
             "[trace] {} holds no flight log: expected files flight.rank<R>.json there or in its "
             "folder flight.",
             path);
    if (start) traced.starts.push_back({path, *start});
    for (const fs::path& file : files) traced.logs.push_back(dist::read_flight_log(file));
  }
  std::ranges::stable_sort(traced.logs, {}, &dist::FlightLog::rank);
  return traced;
}

/// Says how the last start ended, unless the logs are of that start and tell it.
std::string text_of(const std::string& directory, const train::LastStart& start,
                    const std::vector<dist::FlightLog>& logs) {
  const bool has_logs = std::ranges::find(logs, start.id, &dist::FlightLog::start) != logs.end();
  if (has_logs && !start.ended_well()) return "";
  // A start that fails before it trains has logs, and is not listed.
  if (!has_logs && std::ranges::any_of(logs, [&](const dist::FlightLog& log) {
        return log.written_ns > start.told_ns;
      })) {
    return "";
  }
  std::string how = "has neither ended nor left a log: it goes on, or its ranks were killed";
  if (start.end == train::kFinished) how = "ended well: all steps are done";
  if (start.end == train::kStopped) how = "ended well: it was stopped, with everything saved";
  std::string text =
      fmt::format("The last start of {} ({} ranks) {}.\n", directory, start.ranks, how);
  if (!has_logs && !logs.empty()) text += "The logs are of an earlier start:\n\n";
  return text;
}

Json as_json(const dist::FlightRecord& record) {
  return {{"operation", to_string(record.signature)},
          {"group_name", record.group_name},
          {"sequence", record.signature.sequence},
          {"kind", name(record.signature.kind)},
          {"dtype", to_string(record.signature.dtype)},
          {"count", record.signature.count},
          {"root", record.signature.root},
          {"label", record.label},
          {"user_tag", record.user_tag},
          {"state", name(record.state)}};
}

Json as_json(const dist::WaitingRank& waiting) {
  return {{"rank", waiting.rank},
          {"operation", as_json(waiting.record)},
          {"waits_for", waiting.on},
          {"seconds", waiting.seconds}};
}

Json as_json(const dist::AbsentRank& absent) {
  Json json = {{"rank", absent.rank}, {"last", nullptr}, {"now_in", nullptr}};
  if (absent.last) {
    json["last"] = as_json(*absent.last);
    json["seconds_since"] = absent.seconds;
  }
  if (absent.busy_with) json["now_in"] = as_json(*absent.busy_with);
  return json;
}

Json as_json(const dist::StuckOperation::Version& version) {
  return {{"operation", to_string(version.signature)}, {"ranks", version.ranks}};
}

Json as_json(const dist::WaitLink& link) {
  return {{"rank", link.rank}, {"waits_for", link.waits_for}, {"operation", as_json(link.record)}};
}

Json as_json(const dist::StuckOperation& stuck);
Json as_json(const dist::PendingMessage& message);

template <class T>
Json list_of(const std::vector<T>& elements) {
  Json list = Json::array();
  for (const T& element : elements) list.push_back(as_json(element));
  return list;
}

Json as_json(const dist::StuckOperation& stuck) {
  return {{"group", stuck.group.name},
          {"ranks", stuck.group.ranks},
          {"sequence", stuck.sequence},
          {"called", list_of(stuck.versions)},
          {"waiting", list_of(stuck.waiting)},
          {"absent", list_of(stuck.absent)},
          {"done", stuck.done},
          {"without_log", stuck.without_log}};
}

Json as_json(const dist::PendingMessage& message) {
  constexpr const char* kPeers[] = {"there", "not there", "without log"};
  Json json = as_json(message.waiting);
  json["peer"] = message.peer;
  json["peer_is"] = kPeers[static_cast<int>(message.peer_is)];
  return json;
}

Json as_json(const StartOfRun& of_run) {
  const auto& [directory, start] = of_run;
  Json json = {
      {"directory", directory}, {"start", start.id}, {"ranks", start.ranks}, {"end", nullptr}};
  if (start.ended_well()) json["end"] = start.end;
  return json;
}

Json as_json(const dist::FlightAnalysis& analysis) {
  return {{"start", analysis.start},
          {"world_size", analysis.world_size},
          {"without_log", analysis.without_log},
          {"of_other_starts", analysis.other_starts},
          {"of_other_worlds", analysis.other_worlds},
          {"idle", analysis.idle},
          {"circle", list_of(analysis.cycle)},
          {"standstills", list_of(analysis.stuck_operations)},
          {"messages", list_of(analysis.messages)}};
}

}  // namespace

void add_trace(const Verb& app) {
  struct Options {
    std::vector<std::string> paths;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  const Verb verb =
      app.verb("trace", "Explain why a distributed job stopped, from its ranks' flight logs");
  verb.option("log", options->paths,
              "Files flight.rank<R>.json, folders with such, or run directories")
      .required();
  verb.flag("--json", options->json, "One JSON object instead of lines of text");
  verb.runs([options] {
    const Traced traced = read_all(options->paths);
    if (options->json) {
      Json json = as_json(dist::analyse(traced.logs));
      json["last_starts"] = list_of(traced.starts);
      fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
      return;
    }
    for (const auto& [directory, start] : traced.starts) {
      fmt::print("{}", text_of(directory, start, traced.logs));
    }
    if (!traced.logs.empty()) fmt::print("{}", dist::explain(traced.logs));
  });
}

}  // namespace lockstep::launcher

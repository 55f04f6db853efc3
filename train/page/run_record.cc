#include "train/page/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "train/page/file_lines.h"
#include "train/page/metrics_reader.h"
#include "train/report/last_start.h"
#include "train/report/run_directory.h"
#include "train/run/checkpoint_state.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Largest file besides metrics and samples that is read: a page is no place for more.
constexpr uint64_t kMostBytes = uint64_t{16} << 20;

/// More of a sample is cut off.
constexpr size_t kMostSampleBytes = size_t{1} << 16;

/// Fills a record from a run's files. Each function reads one file, and says in `missing` why it
/// could not.
class Reader {
 public:
  Reader(RunRecord& record, const RunDirectory& directory, const RunRecordOptions& options)
      : record_(record), directory_(directory), options_(options) {}

  void read_metrics() {
    MetricsReader reader(record_, options_);
    lines_of(directory_.metrics(), /*required=*/true,
             [&](std::string_view line, int64_t number) { reader.read(line, number); });
    reader.finish();
  }

  void read_config() {
    const std::optional<std::string> config = text_of(directory_.config(), true);
    if (!config) return;
    record_.config = read_config_values(*config);
    const auto annotated = text_of(directory_.path() / "config_origins.txtpb", false);
    if (annotated) {
      record_.config = with_origins(std::move(record_.config), read_config_values(*annotated));
    } else {
      miss("config_origins.txtpb", "is not there, so that the origins of values are not known");
    }
  }

  void read_environment() {
    const std::optional<Json> json = json_of(directory_.environment(), true);
    if (!json) return;
    if (const auto command = json->find("command_line");
        command != json->end() && command->is_array()) {
      for (const Json& word : *command) record_.command_line.push_back(shown(word));
    }
    if (json->contains("working_directory")) {
      record_.working_directory = shown((*json)["working_directory"]);
    }
    flatten(*json, "", record_.environment);
    std::erase_if(record_.environment,
                  [](const auto& fact) { return fact.first == "command_line"; });
  }

  void read_goodput() {
    const std::optional<Json> json = json_of(directory_.goodput(), false);
    if (!json) return;
    for (const auto& [name, value] : json->items()) {
      if (value.is_number()) record_.goodput[name] = value.get<double>();
    }
    if (const auto ended = json->find("ended"); ended != json->end()) {
      record_.ended = shown(*ended);
    }
  }

  /// Keeps the first, the last, and others at equal distances: when there are too many every second
  /// one is dropped.
  void read_samples() {
    size_t stride = 1;
    size_t bytes = 0;
    int64_t seen = 0;
    std::optional<RunSample> newest;
    lines_of(directory_.samples(), false, [&](std::string_view line, int64_t) {
      std::optional<RunSample> sample = sample_of(line);
      if (!sample) return;
      newest = sample;
      if (static_cast<size_t>(seen++) % stride != 0) return;
      bytes += sample->text.size();
      record_.samples.push_back(std::move(*sample));
      while (record_.samples.size() > 1 &&
             (record_.samples.size() > options_.samples || bytes > options_.sample_bytes)) {
        stride *= 2;
        std::vector<RunSample> kept;
        bytes = 0;
        for (size_t i = 0; i < record_.samples.size(); i += 2) {
          bytes += record_.samples[i].text.size();
          kept.push_back(std::move(record_.samples[i]));
        }
        record_.samples = std::move(kept);
      }
    });
    if (newest && record_.samples.back().step != newest->step) record_.samples.push_back(*newest);
    record_.samples_left_out = seen - std::ssize(record_.samples);
  }

  void read_restarts() {
    lines_of(directory_.restarts(), false, [&](std::string_view line, int64_t) {
      const Json json = parsed(line);
      if (!json.is_object()) return;
      const auto step = json.find("step_lost");
      std::string text = json.contains("cause") ? shown(json["cause"]) : "";
      if (json.contains("host")) text += " on " + shown(json["host"]);
      if (json.contains("resumed_from")) text += ", went on from " + shown(json["resumed_from"]);
      const int64_t told =
          step != json.end() && step->is_number_integer() ? step->get<int64_t>() : 0;
      add_event(record_, options_, {is_step(told) ? told : 0, "failure", text});
    });
  }

  void read_checkpoints() {
    std::vector<CheckpointEntry> found;
    try {
      found = list_checkpoints(directory_.checkpoints());
    } catch (const Error& error) {
      miss("checkpoints", error.what());
    }
    std::set<int64_t> told;
    for (const RunEvent& event : record_.events) {
      if (event.kind == "checkpoint") told.insert(event.step);
    }
    for (const CheckpointEntry& entry : found) {
      if (!entry.complete) {
        add_event(
            record_, options_,
            {entry.step, "warning",
             entry.path.filename().string() + " is " + name(entry.state) + ": " + entry.problem});
      } else if (!told.contains(entry.step)) {
        add_event(record_, options_, {entry.step, "checkpoint", ""});
      }
    }
  }

  void read_overlap() {
    const std::optional<Json> json = json_of(directory_.overlap(), false);
    if (!json) return;
    RecordedOverlap& overlap = record_.overlap;
    for (const auto& [name, value] : json->items()) {
      if (!value.is_structured()) overlap.facts.emplace_back(name, shown(value));
    }
    if (const auto buckets = json->find("buckets"); buckets != json->end() && buckets->is_array()) {
      for (const Json& bucket : *buckets) overlap.buckets.push_back(bucket_row(bucket));
    }
    overlap.picture = text_of(directory_.overlap_chart(), false).value_or("");
  }

 private:
  static std::string shown(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static Json parsed(std::string_view text) {
    try {
      return parse_ordered_json(text);
    } catch (const DataError&) {
      return Json(Json::value_t::discarded);
    }
  }

  static void flatten(const Json& json, const std::string& path,
                      std::vector<std::pair<std::string, std::string>>& facts) {
    for (const auto& [name, value] : json.items()) {
      if (value.is_object()) {
        flatten(value, path + name + ".", facts);
      } else if (value.is_array()) {
        std::string list;
        for (const Json& each : value) list += (list.empty() ? "" : " ") + shown(each);
        facts.emplace_back(path + name, list);
      } else {
        facts.emplace_back(path + name, shown(value));
      }
    }
  }

  static std::optional<RunSample> sample_of(std::string_view line) {
    const Json json = parsed(line);
    if (!json.is_object() || !json.contains("step") || !json.contains("text")) return std::nullopt;
    if (!json["step"].is_number_integer() || !json["text"].is_string()) return std::nullopt;
    RunSample sample{json["step"].get<int64_t>(), json["text"].get<std::string>()};
    if (!is_step(sample.step)) return std::nullopt;
    if (sample.text.size() > kMostSampleBytes) {
      const size_t more = sample.text.size() - kMostSampleBytes;
      sample.text =
          fmt::format("{} ... {} bytes more", sample.text.substr(0, kMostSampleBytes), more);
    }
    return sample;
  }

  std::vector<std::string> bucket_row(const Json& bucket) const {
    const auto member = [&](const char* name) {
      return bucket.is_object() && bucket.contains(name) ? shown(bucket[name]) : std::string("-");
    };
    const size_t number = record_.overlap.buckets.size() + 1;
    return {std::to_string(number), member("first") + " to " + member("last"),
            member("bytes"),        member("ready_ms"),
            member("launched_ms"),  member("done_ms"),
            member("exposed_ms"),   member("cause")};
  }

  void miss(const std::string& file, const std::string& why) {
    record_.missing.push_back(fmt::format("{} {}.", file, why));
  }

  /// Whether the file exists; one that is `required` and does not is told.
  bool is_there(const fs::path& file, bool required) {
    std::error_code failed;
    if (fs::exists(fs::symlink_status(file, failed))) return true;
    if (required) miss(file.filename().string(), "is not there");
    return false;
  }

  std::optional<std::string> text_of(const fs::path& file, bool required) {
    if (!is_there(file, required)) return std::nullopt;
    try {
      return read_whole_file(file, kMostBytes);
    } catch (const FileError& error) {
      miss(file.filename().string(), "cannot be read: " + error.reason());
      return std::nullopt;
    }
  }

  std::optional<Json> json_of(const fs::path& file, bool required) {
    const std::optional<std::string> text = text_of(file, required);
    if (!text) return std::nullopt;
    Json json = parsed(*text);
    if (json.is_object()) return json;
    miss(file.filename().string(), "is no JSON object");
    return std::nullopt;
  }

  void lines_of(const fs::path& file, bool required,
                const std::function<void(std::string_view, int64_t)>& line) {
    if (!is_there(file, required)) return;
    try {
      if (for_each_line(file, line)) {
        miss(file.filename().string(), "has a last line that is not whole, which is left out");
      }
    } catch (const FileError& error) {
      miss(file.filename().string(), "cannot be read: " + error.reason());
    }
  }

  RunRecord& record_;
  RunDirectory directory_;
  RunRecordOptions options_;
};

std::string name_of(const fs::path& path) {
  fs::path whole = fs::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.filename().string();
}

}  // namespace

const StepSeries* RunRecord::find(const std::string& member) const {
  const auto found = series.find(member);
  return found == series.end() || found->second.empty() ? nullptr : &found->second;
}

RunRecord read_run(const fs::path& path, const RunRecordOptions& options) {
  RunRecord record;
  std::error_code failed;
  if (!fs::is_directory(path, failed)) {
    LS_CHECK(fs::exists(path, failed), DataError,
             "[report] {} is not there: expected a run directory or a metrics.jsonl.",
             path.string());
    record.path = path;
    record.name = name_of(fs::absolute(path).parent_path());
    MetricsReader reader(record, options);
    const bool cut = for_each_line(
        path, [&](std::string_view line, int64_t number) { reader.read(line, number); });
    reader.finish();
    if (cut) record.missing.push_back("The last line of the metrics is not whole.");
    LS_CHECK(!record.series.empty(), DataError, "[report] {} holds no step.", path.string());
    return record;
  }
  const RunDirectory directory = RunDirectory::open(path);
  record.path = path;
  record.name = name_of(path);
  Reader reader(record, directory, options);
  reader.read_metrics();
  reader.read_config();
  reader.read_environment();
  reader.read_goodput();
  reader.read_samples();
  reader.read_restarts();
  reader.read_checkpoints();
  reader.read_overlap();
  if (const std::optional<LastStart> start = read_last_start(path)) record.ranks = start->ranks;
  std::ranges::stable_sort(record.events, {}, &RunEvent::step);
  return record;
}

}  // namespace lockstep::train

#include "train/bisect/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "configs/annotated_text.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "core/base/parse_number.h"
#include "core/device/arithmetic_facts.h"
#include "train/arithmetic.h"
#include "train/build.h"
#include "train/report/last_start.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

/// "1.2.3" as numbers; parts that are none count as 0.
std::array<int64_t, 3> parts_of(std::string_view version) {
  std::array<int64_t, 3> parts{};
  for (int64_t& part : parts) {
    const size_t dot = std::min(version.find('.'), version.size());
    part = parse_number<int64_t>(version.substr(0, dot)).value_or(0);
    version.remove_prefix(std::min(dot + 1, version.size()));
  }
  return parts;
}

/// Reads what environment.json says; it may be missing.
void read_environment(RecordedRun& run) {
  const fs::path path = run.directory.environment();
  if (!name_exists(path)) return;
  nlohmann::json facts;
  try {
    facts = parse_json(read_whole_file(path));
  } catch (const JsonSyntaxError& error) {
    throw DataError(fmt::format("[bisect] {}: {} Copy the file from the run again.", path.string(),
                                error.what()));
  }
  const auto is_text = [](const nlohmann::json& value) { return value.is_string(); };
  if (facts.is_object() && facts.contains("version") && is_text(facts["version"])) {
    run.version = facts["version"].get<std::string>();
  }
  if (!facts.is_object() || !facts.contains("arithmetic") || !facts["arithmetic"].is_object()) {
    return;
  }
  for (const auto& [name, value] : facts["arithmetic"].items()) {
    if (is_text(value)) run.arithmetic[name] = value.get<std::string>();
  }
}

bool begins_with_one_of(std::string_view path, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view each) {
    return path == each || (path.starts_with(each) && path.substr(each.size()).starts_with('.'));
  });
}

/// What decides which operators a step calls, and on what.
bool decides_calls(std::string_view path) {
  if (begins_with_one_of(path, {"model.recompute", "model.checkpoint_every", "model.weights"})) {
    return false;
  }
  return begins_with_one_of(
      path, {"seed", "precision", "model", "data", "train.batch_size", "train.micro_batch_size",
             "train.leaves", "train.overfit_one_batch"});
}

/// What changes numbers and not calls.
bool changes_numbers(std::string_view path) {
  return begins_with_one_of(path, {"optimizer", "schedule", "reproducibility", "model.weights"}) &&
         path != "optimizer.optimizer_in_backward";
}

template <class Which>
std::vector<std::string> differing(const RecordedRun& a, const RecordedRun& b, const Which& which) {
  std::vector<std::string> fields;
  for (const config::Difference& found : config::differences(a.config(), b.config())) {
    if (!which(found.path)) continue;
    fields.push_back(fmt::format("{} {} -> {}", found.path, found.a.empty() ? "(not set)" : found.a,
                                 found.b.empty() ? "(not set)" : found.b));
  }
  return fields;
}

}  // namespace

config::RunConfig RecordedRun::config() const {
  return config::load_text(config_text, directory.config().string());
}

RecordedRun read_run(const fs::path& path) {
  RecordedRun run{.directory = RunDirectory::open(path), .name = path.string()};
  read_environment(run);
  if (parts_of(run.version) > parts_of(LOCKSTEP_VERSION)) {
    throw NewerVersionError(
        fmt::format("[bisect] {} was computed by Lockstep {}: expected {} or earlier. Use that "
                    "version.",
                    run.name, run.version, LOCKSTEP_VERSION));
  }
  LS_CHECK(name_exists(run.directory.config()), DataError,
           "[bisect] {} has no {}: expected the run's config, to compute its steps again. Name a "
           "run directory.",
           run.name, run.directory.config().filename().string());
  run.config_text = read_whole_file(run.directory.config());
  (void)run.config();
  run.steps = read_metrics(path);
  if (const std::optional<LastStart> start = read_last_start(path)) {
    run.ranks = start->ranks;
    run.hosts = start->hosts;
    run.always_so = start->is_as_before;
  }
  return run;
}

std::string difference_to_here(const RecordedRun& run) {
  if (run.arithmetic.empty()) return "";
  std::vector<ArithmeticFact> expected, here = arithmetic_facts(device_of(run.config()));
  for (const auto& [name, value] : run.arithmetic) expected.push_back({name, value});
  return arithmetic_difference(expected, here);
}

std::vector<std::string> incomparable_fields(const RecordedRun& a, const RecordedRun& b) {
  return differing(a, b, decides_calls);
}

std::vector<std::string> changed_fields(const RecordedRun& a, const RecordedRun& b) {
  return differing(a, b, changes_numbers);
}

}  // namespace lockstep::train

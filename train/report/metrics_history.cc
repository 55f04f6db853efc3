#include "train/report/metrics_history.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/base/files/lines_from_end.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Parses a number as JsonLine writes it.
std::optional<double> number(const Json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end()) return std::nullopt;
  if (member->is_number()) return member->get<double>();
  if (*member == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (*member == "Infinity") return std::numeric_limits<double>::infinity();
  if (*member == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

/// The line without the zeros in front that a power cut leaves of lines that were not on the disk.
std::string_view without_lost(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of('\0'), line.size()));
  return line;
}

/// The number after `name` if the line begins with that.
std::optional<int64_t> number_after(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  int64_t number = 0;
  const auto read = std::from_chars(line.data() + name.size(), line.data() + line.size(), number);
  return read.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

/// Returns a discarded value for a line that is not JSON.
Json parse_line(std::string_view line, const fs::path& file, int64_t number) {
  try {
    return parse_json(line);
  } catch (const JsonSyntaxError&) {
    return Json(Json::value_t::discarded);
  } catch (const DataError& error) {
    throw DataError(fmt::format("[metrics] {}:{}: {}", file.string(), number, error.what()));
  }
}

}  // namespace

std::vector<MetricsRecord> read_records(const fs::path& file) {
  const std::string text = read_whole_file(file);
  std::vector<MetricsRecord> records;
  int64_t line_number = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    ++line_number;
    const std::string_view whole = std::string_view(text).substr(begin, end - begin);
    const std::string_view line = without_lost(whole);
    if (line.empty() && !whole.empty()) continue;
    const Json object = parse_line(line, file, line_number);
    LS_CHECK(object.is_object(), DataError,
             "[metrics] {}:{}: expected a JSON object on each line, got \"{:.40}\".", file.string(),
             line_number, line);
    if (const auto back = object.find("rollback_to"); back != object.end()) {
      LS_CHECK(back->is_number_integer(), DataError,
               "[metrics] {}:{}: rollback_to: expected the step that training returned to, an "
               "integer, got \"{:.40}\".",
               file.string(), line_number, line);
      const auto kept = back->get<int64_t>();
      std::erase_if(records, [&](const MetricsRecord& record) { return record.step > kept; });
    }
    const auto step = object.find("step");
    if (step == object.end() || !step->is_number_integer()) continue;
    records.push_back({.step = step->get<int64_t>(),
                       .loss = number(object, "loss"),
                       .grad_norm = number(object, "grad_norm"),
                       .val_loss = number(object, "val_loss")});
  }
  return records;
}

int64_t last_step(const fs::path& file) {
  try {
    LinesFromEnd lines(file);
    while (const std::optional<std::string> line = lines.next()) {
      if (!lines.was_whole()) continue;
      for (const char* name : {"{\"step\":", "{\"rollback_to\":"}) {
        if (const auto step = number_after(*line, name)) return *step;
      }
    }
  } catch (const FileError&) {
    // Nothing is known.
  }
  return 0;
}

std::vector<MetricsRecord> read_metrics(const fs::path& path) {
  std::error_code failed;
  const fs::path file = fs::is_directory(path, failed) ? path / "metrics.jsonl" : path;
  std::vector<MetricsRecord> records = read_records(file);
  LS_CHECK(!records.empty(), DataError, "[metrics] {} holds no step.", file.string());
  return records;
}

}  // namespace lockstep::train

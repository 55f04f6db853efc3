#include "train/report/last_start.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr int kMostHosts = 1 << 24;

/// Returns an integer of at least `least`. Json::get would take fractions and cut large numbers.
template <class T>
T integer(const Json& json, T least) {
  const bool fits = json.is_number_unsigned()
                        ? std::in_range<T>(json.get<uint64_t>())
                        : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
  if (!fits || json.get<T>() < least) throw std::invalid_argument(json.dump());
  return json.get<T>();
}

int64_t time_of(const Json& json) {
  return json.contains("at_ns") ? integer<int64_t>(json["at_ns"], 0) : 0;
}

std::vector<int> hosts_of(const Json& json) {
  std::vector<int> hosts;
  if (!json.contains("hosts")) return hosts;
  if (!json["hosts"].is_array()) throw std::invalid_argument(json.dump());
  for (const Json& each : json["hosts"]) {
    // JsonLine writes arrays of floating-point numbers.
    const auto number = each.get<double>();
    if (!(number >= 0 && number <= kMostHosts) || number != std::floor(number)) {
      throw std::invalid_argument(each.dump());
    }
    hosts.push_back(static_cast<int>(number));
  }
  return hosts;
}

std::string end_of(const Json& json) {
  std::string how = json.at("how").get<std::string>();
  if (how != kFinished && how != kStopped) throw std::invalid_argument(how);
  return how;
}

/// Applies one line to what the lines before it said. Throws for a line that is none of RunStart's.
void read_line(const std::string& line, std::optional<LastStart>& last) {
  const Json json = parse_json(line);
  std::string id = json.at("start").get<std::string>();
  const int64_t at_ns = time_of(json);
  if (json.contains("ranks")) {
    LastStart start{.id = std::move(id),
                    .ranks = integer<int>(json["ranks"], 1),
                    .end = "",
                    .hosts = hosts_of(json),
                    .told_ns = at_ns};
    start.is_as_before =
        !last || (last->is_as_before && last->ranks == start.ranks && last->hosts == start.hosts);
    last = std::move(start);
  } else if (last && last->id == id) {
    last->end = end_of(json);
    if (at_ns != 0) last->told_ns = at_ns;
  }
}

}  // namespace

std::optional<LastStart> parse_last_start(const std::string& text) {
  std::optional<LastStart> last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    try {
      read_line(line, last);
    } catch (const std::exception&) {
      continue;
    }
  }
  return last;
}

std::optional<LastStart> read_last_start(const std::filesystem::path& directory) {
  try {
    return parse_last_start(read_whole_file(directory / "starts.jsonl", kMostBytes));
  } catch (const FileError&) {
    return std::nullopt;
  }
}

}  // namespace lockstep::train

#include "train/report/last_start.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/base/parse_json.h"

namespace lockstep::train {

std::optional<LastStart> parse_last_start(const std::string& text) {
  std::optional<LastStart> last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    try {
      const nlohmann::json json = parse_json(line);
      std::string id = json.at("start").get<std::string>();
      if (json.contains("ranks")) {
        last = LastStart{std::move(id), json.at("ranks").get<int>(), "",
                         json.value("at_ns", int64_t{0})};
      } else if (last && last->id == id) {
        last->end = json.at("how").get<std::string>();
        last->told_ns = json.value("at_ns", last->told_ns);
      }
    } catch (const std::exception&) {
      continue;
    }
  }
  return last;
}

}  // namespace lockstep::train

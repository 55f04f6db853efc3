#include "launcher/launch/hostfile.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "core/base/parse_number.h"

namespace lockstep::launcher {
namespace {

constexpr std::string_view kSpaces = " \t\r\v\f";
constexpr int kMostSlots = 1 << 20;  ///< of a host, over all of its lines
constexpr std::array<std::string_view, 4> kKeys = {"slots", "max_slots", "max-slots", "count"};

bool is_host_name(const std::string& name) {
  return std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '@' || c == ':';
  });
}

/// Removes comments and the spaces around '=': "a = 4" becomes "a=4".
std::string joined(std::string line) {
  line.resize(std::min(line.find('#'), line.size()));
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (kSpaces.find(line[i]) == kSpaces.npos) {
      text += line[i];
      continue;
    }
    const size_t next = line.find_first_not_of(kSpaces, i);
    const bool around_equals = (next != line.npos && line[next] == '=') || text.ends_with('=');
    if (!around_equals) text += ' ';
    i = std::min(next, line.size()) - 1;
  }
  return text;
}

}  // namespace

std::vector<LaunchHost> parse_hostfile(const std::string& text, const std::string& file) {
  std::vector<LaunchHost> hosts;
  std::unordered_map<std::string, size_t> places;  // in `hosts`, by name
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(joined(line));
    LaunchHost host;
    if (!(words >> host.name)) continue;
    LS_CHECK(is_host_name(host.name), ConfigError,
             "{}:{}: {:?} is no host name: expected NAME slots=N.", file, number, host.name);
    for (std::string word; words >> word;) {
      const size_t equals = std::min(word.find('='), word.size());
      const std::string key = word.substr(0, equals);
      const std::optional<std::string_view> meant = nearest(key, kKeys);
      LS_CHECK(equals < word.size() && std::ranges::find(kKeys, key) != kKeys.end(), ConfigError,
               "{}:{}: {:?} is not known in a hostfile: expected NAME slots=N.{}", file, number,
               word, meant ? fmt::format(" Did you mean {}=?", *meant) : "");
      const std::optional<int> value = parse_number<int>(word.substr(equals + 1));
      LS_CHECK(value && *value >= 1 && *value <= kMostSlots, ConfigError,
               "{}:{}: {} needs a number: expected an integer from 1 to {}, got {:?}.", file,
               number, key, kMostSlots, word.substr(equals + 1));
      if (!key.starts_with("max")) host.slots = *value;
    }
    const auto [place, is_new] = places.try_emplace(host.name, hosts.size());
    if (is_new) {
      hosts.push_back(host);
      continue;
    }
    LaunchHost& known = hosts[place->second];
    LS_CHECK(host.slots <= kMostSlots - known.slots, ConfigError,
             "{}:{}: {} has more than {} slots on all of its lines.", file, number, host.name,
             kMostSlots);
    known.slots += host.slots;
  }
  LS_CHECK(!hosts.empty(), ConfigError, "{}:{}: no host in this file: expected lines NAME slots=N.",
           file, std::max(number, 1));
  return hosts;
}

}  // namespace lockstep::launcher

#include "dist/rendezvous/slurm_lists.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/base/check.h"
#include "core/base/parse_number.h"

namespace lockstep::dist {
namespace {

constexpr size_t kMostElements = 1'000'000;
/// Longest name of a node, as the name service has it. Without a limit a million names could each
/// be as long as the list.
constexpr size_t kLongestName = 255;

[[noreturn]] void refuse(std::string_view what, std::string_view text, std::string_view problem) {
  throw ConfigError(fmt::format("[slurm] \"{:.100}\" is no {}: {}.", text, what, problem));
}

/// Splits at commas that are not in brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

/// Parses digits only, whereas parse_number accepts a sign.
std::optional<uint32_t> number(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : parse_number<uint32_t>(text);
}

class NodeList {
 public:
  explicit NodeList(std::string_view text) : text_(text) {}

  std::vector<std::string> parsed() {
    for (const std::string_view part : split(text_)) {
      if (part.empty()) refuse("an empty name");
      for (std::string& name : names(part)) nodes_.push_back(std::move(name));
      if (nodes_.size() > kMostElements) refuse("too many nodes");
    }
    return std::move(nodes_);
  }

 private:
  [[noreturn]] void refuse(std::string_view problem) const {
    dist::refuse("list of nodes", text_, problem);
  }

  /// Expands a name such as "rack[0-1]n[01-03]" to all combinations.
  std::vector<std::string> names(std::string_view part) const {
    std::vector<std::string> names = {""};
    while (!part.empty()) {
      const size_t open = part.find_first_of("[]");
      const std::string_view fixed = part.substr(0, open);
      for (std::string& name : names) {
        if (fixed.size() > kLongestName - name.size()) refuse("a name is too long");
        name += fixed;
      }
      if (open == part.npos) break;
      const size_t close = part.find(']', open);
      if (part[open] == ']' || close == part.npos) refuse("brackets do not match");
      names = combined(names, numbers(part.substr(open + 1, close - open - 1)));
      part.remove_prefix(close + 1);
    }
    return names;
  }

  std::vector<std::string> combined(const std::vector<std::string>& heads,
                                    const std::vector<std::string>& tails) const {
    if (heads.size() * tails.size() > kMostElements) refuse("too many nodes");
    std::vector<std::string> names;
    names.reserve(heads.size() * tails.size());
    for (const std::string& head : heads) {
      for (const std::string& tail : tails) {
        if (tail.size() > kLongestName - head.size()) refuse("a name is too long");
        names.push_back(head + tail);
      }
    }
    return names;
  }

  /// Expands "01-03,7" to 01, 02, 03, 7. Numbers of a range are padded to the width of the first.
  std::vector<std::string> numbers(std::string_view ranges) const {
    std::vector<std::string> numbers;
    for (const std::string_view range : split(ranges)) {
      const size_t dash = range.find('-');
      const std::string_view low = range.substr(0, dash);
      if (low.size() > kLongestName) refuse("a name is too long");
      const std::optional<uint32_t> first = number(low);
      const std::optional<uint32_t> last =
          dash == range.npos ? first : number(range.substr(dash + 1));
      if (!first || !last || *last < *first) refuse("numbers and ascending ranges expected in []");
      if (numbers.size() >= kMostElements) refuse("too many nodes");
      if (*last - *first >= kMostElements - std::min(kMostElements, numbers.size())) {
        refuse("too many nodes");
      }
      for (uint64_t value = *first; value <= *last; ++value) {
        numbers.push_back(fmt::format("{:0{}}", value, low.size()));
      }
    }
    return numbers;
  }

  std::string_view text_;
  std::vector<std::string> nodes_;
};

}  // namespace

std::vector<int> parse_tasks_per_node(std::string_view text) {
  constexpr std::string_view kWhat = "list of tasks per node";
  std::vector<int> tasks;
  for (const std::string_view part : split(text)) {
    const size_t repeat = part.find("(x");
    const std::optional<uint32_t> value = number(part.substr(0, repeat));
    std::optional<uint32_t> times = 1;
    if (repeat != part.npos) {
      if (!part.ends_with(')')) refuse(kWhat, text, "a closing bracket is missing");
      times = number(part.substr(repeat + 2, part.size() - repeat - 3));
    }
    if (!value || *value > kMostElements || !times || *times == 0) {
      refuse(kWhat, text, "numbers expected, such as 4(x2),3");
    }
    if (*times > kMostElements - tasks.size()) refuse(kWhat, text, "too many nodes");
    tasks.insert(tasks.end(), *times, static_cast<int>(*value));
  }
  return tasks;
}

std::vector<std::string> parse_node_list(std::string_view text) { return NodeList(text).parsed(); }

}  // namespace lockstep::dist

#include "dist/rendezvous/slurm_lists.h"

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

constexpr size_t kMostElements = 1'000'000;

template <class Parse, class Check>
Outcome parse_list(Parse parse, Check check) {
  try {
    const auto elements = parse();
    require(!elements.empty() && elements.size() <= kMostElements,
            "a list has from one to a million elements");
    for (const auto& element : elements) check(element);
    return Outcome::kAccepted;
  } catch (const ConfigError& error) {
    require(std::string(error.what()).starts_with("[slurm] "), "an error names its source");
    return Outcome::kRefused;
  }
}

}  // namespace

Outcome fuzz_slurm_lists(Input input) {
  const std::string text = text_of(input);
  const Outcome nodes = parse_list([&] { return dist::parse_node_list(text); },
                                   [](const std::string& name) {
                                     require(!name.empty() && name.size() <= 255,
                                             "a name has at most 255 characters");
                                   });
  const Outcome tasks = parse_list([&] { return dist::parse_tasks_per_node(text); },
                                   [](int count) { require(count >= 0, "no count is negative"); });
  return nodes == Outcome::kAccepted ? nodes : tasks;
}

}  // namespace lockstep::fuzz

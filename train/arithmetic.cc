#include "train/arithmetic.h"

#include <fmt/ranges.h>

#include <map>

#include "core/base/check.h"
#include "core/device/facts_text.h"
#include "dist/group/agreement.h"
#include "dist/group/failure.h"
#include "dist/rendezvous/rank_list.h"

namespace lockstep::train {

namespace {

std::string value_of(const std::vector<ArithmeticFact>& facts, const std::string& name) {
  for (const ArithmeticFact& fact : facts) {
    if (fact.name == name) return fmt::format("\"{}\"", fact.value);
  }
  return "nothing";
}

}  // namespace

std::string arithmetic_difference(const std::vector<ArithmeticFact>& expected,
                                  const std::vector<ArithmeticFact>& found) {
  std::vector<std::string> names;
  for (const ArithmeticFact& fact : expected) names.push_back(fact.name);
  for (const ArithmeticFact& fact : found) {
    if (value_of(expected, fact.name) == "nothing") names.push_back(fact.name);
  }
  std::vector<std::string> differences;
  for (const std::string& name : names) {
    const std::string there = value_of(expected, name), here = value_of(found, name);
    if (there != here) {
      differences.push_back(fmt::format("{}: expected {}, got {}", name, there, here));
    }
  }
  return fmt::format("{}", fmt::join(differences, "; "));
}

void require_same_arithmetic(dist::ProcessGroup& group, const std::vector<ArithmeticFact>& facts) {
  const std::vector<std::string> texts =
      dist::all_gather_texts(group, format_facts(facts), dist::at_start(group));
  const std::vector<ArithmeticFact> of_leader = parse_facts(texts[0]);
  std::map<std::string, std::vector<int>> ranks;  // by their difference from rank 0
  for (int rank = 1; rank < group.size(); ++rank) {
    const std::string& text = texts[static_cast<size_t>(rank)];
    if (text != texts[0]) {
      ranks[arithmetic_difference(of_leader, parse_facts(text))].push_back(rank);
    }
  }
  if (ranks.empty()) return;
  dist::finish_together(group);
  std::vector<std::string> parts;
  for (const auto& [difference, who] : ranks) {
    parts.push_back(fmt::format("{} on {}", difference, dist::rank_list(who)));
  }
  throw dist::CommonMismatchError(
      fmt::format("[train] reproducibility: BITWISE needs ranks whose results have the same bits, "
                  "but not all "
                  "compute as rank 0 does. {}. Start all ranks with one build on processors of one "
                  "kind and "
                  "the same variables, limit all of them alike (LOCKSTEP_CPU_CAPABILITY=avx2 "
                  "ONEDNN_MAX_CPU_ISA=AVX2), or give the bits up: --set reproducibility=ORDINARY.",
                  fmt::join(parts, "; ")),
      group.rank(), group.size());
}

}  // namespace lockstep::train

#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/dist/group/communicator_ranks.h"

namespace lockstep::dist {

/// Runs `body` on two ranks and returns the operations that rank 0's flight recorder has with a
/// label, each once: "all_reduce of bucket 1".
inline std::set<std::string> labelled_operations(const std::function<void(ProcessGroup&)>& body) {
  const auto first = all_communicators(2, [&](ProcessGroup& group, Communicator&) { body(group); });
  std::set<std::string> found;
  for (const FlightRecord& record : first->recorder().records()) {
    if (record.label[0] == '\0') continue;
    found.insert(std::string(name(record.signature.kind)) + " of " + record.label);
  }
  return found;
}

}  // namespace lockstep::dist

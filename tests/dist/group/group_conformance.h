#pragma once

#include <span>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// A requirement on every kind of group. All ranks of a group call `run`, which uses GoogleTest's
/// expectations.
struct GroupCase {
  const char* name;
  void (*run)(ProcessGroup& group);
};

std::span<const GroupCase> group_cases();

}  // namespace lockstep::dist

#pragma once

#include <span>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Something that every kind of group must do. All ranks of a group call `run`; it uses
/// GoogleTest's expectations.
struct GroupCase {
  const char* name;
  void (*run)(ProcessGroup& group);
};

std::span<const GroupCase> group_cases();

}  // namespace lockstep::dist

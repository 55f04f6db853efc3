#pragma once

#include <string_view>

namespace lockstep::profile {

// How names are written in traces.

/// Before the names of operators without a namespace of their own.
inline constexpr std::string_view kAten = "aten::";
/// Before the names of backward nodes.
inline constexpr std::string_view kNodePrefix = "autograd::engine::evaluate_function: ";
/// Before the numbers of steps.
inline constexpr std::string_view kStepPrefix = "ProfilerStep#";

}  // namespace lockstep::profile

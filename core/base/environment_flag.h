#pragma once

namespace lockstep {

/// Whether the environment variable `name` is "1". Not cached: call once and keep the result.
bool environment_flag(const char* name);

}  // namespace lockstep

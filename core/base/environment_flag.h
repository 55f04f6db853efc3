#pragma once

namespace lockstep {

/// Whether the environment variable `name` is "1". Ask once and keep the answer.
bool environment_flag(const char* name);

}  // namespace lockstep

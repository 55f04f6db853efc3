#pragma once

#include <cstdio>
#include <string_view>
#include <utility>

#include "core/base/check.h"

namespace lockstep {

/// Writes `text` to a log and flushes it. A log may break while the work that it tells of goes on
/// (a full disk, a pipe whose reader has ended), so this never throws: it returns 0, or the errno
/// of the failure, and drops what could not be written. The process must ignore SIGPIPE and
/// SIGXFSZ, as the program `lockstep` does.
int write_log(std::FILE* log, std::string_view text) noexcept;

/// As write_log, with a formatted text.
template <class... Arguments>
int print_log(std::FILE* log, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return write_log(log, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace lockstep

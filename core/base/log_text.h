#pragma once

#include <cstdio>
#include <string_view>

namespace lockstep {

/// Writes `text` to a log and flushes it. A log may break while the work that it tells of goes on
/// (a full disk, a pipe whose reader has ended), so this never throws: it returns 0, or the errno
/// of the failure, and drops what could not be written. The process must ignore SIGPIPE and
/// SIGXFSZ, as the program `lockstep` does.
int write_log(std::FILE* log, std::string_view text) noexcept;

}  // namespace lockstep

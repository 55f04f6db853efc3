#include "core/base/log_text.h"

#include <stdio_ext.h>

#include <cerrno>

namespace lockstep {

int write_log(std::FILE* log, std::string_view text) noexcept {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), log) == text.size();
  if (written && std::fflush(log) == 0) return 0;
  const int error = errno == 0 ? EIO : errno;
  // Neither a later write nor the end of the program should try this text again.
  __fpurge(log);
  std::clearerr(log);
  return error;
}

}  // namespace lockstep

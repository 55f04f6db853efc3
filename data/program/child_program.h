#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "core/base/descriptor.h"

namespace lockstep::train {

/// A program that answers requests: a request is a line on its standard input, an answer a line on
/// its standard output, with any number of bytes behind it. What it prints to standard error goes
/// where this process's does. It ends with this process, whose end is the end of its input. Not
/// thread-safe.
class ChildProgram {
 public:
  /// Starts `command` by sh -c, in a process group of its own: a terminal's interrupt is for this
  /// process. An answer may take `timeout`. Throws DataError.
  ChildProgram(std::string command, std::chrono::milliseconds timeout);
  /// Ends its input, and kills the process group if it has not ended after a second.
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  const std::string& command() const { return command_; }
  /// Sends a line, without its line end, and returns the one that answers it. Throws DataError if
  /// the program has ended, does not answer in time, or answers with a line of more than 64 KiB.
  std::string ask(const std::string& request);
  /// The next bytes of the answer. Throws DataError as `ask`.
  void read(std::span<std::byte> into);

 private:
  using Clock = std::chrono::steady_clock;

  void send(std::string_view bytes);
  /// Waits until the program's end of the connection is ready for `events`.
  void wait_for(short events);
  /// Reads what is there, at least one byte.
  void receive();
  [[noreturn]] void fail(const std::string& reason);
  /// How the program has ended; empty if it has not.
  std::string ending();

  std::string command_;
  std::chrono::milliseconds timeout_;
  Descriptor connection_;
  pid_t process_ = 0;  ///< 0: it was waited for
  int status_ = 0;
  std::string received_;  ///< and not yet used
  Clock::time_point until_;
};

}  // namespace lockstep::train

#pragma once

#include <string_view>

#include "core/base/error.h"

/// The program's standard input, output and error.
namespace lockstep::launcher {

/// Opens those of the descriptors 0 to 2 that the process was started without on /dev/null, so that
/// no file of a run gets their numbers. Output and errors are opened for reading: writing them
/// fails, as without a descriptor. Call at the start of the program.
void open_missing_streams();

/// Makes writes to a pipe without a reader, or beyond `ulimit -f`, fail with an error instead of
/// ending the process.
void ignore_write_signals();
/// Undoes this in a process that is about to become another program. Safe between fork and exec.
void restore_write_signals();

/// Writes `text` to standard output at once. Throws Error if that fails.
void write_output(std::string_view text);
/// The error of a write to standard output that failed with the error number `error`.
Error lost_output(int error);
/// Throws Error unless everything printed to standard output so far has been written.
void require_output_written();

}  // namespace lockstep::launcher

#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

/// Throws ConfigError unless `path` names a picture that write_picture can write here: FILE.svg, or
/// FILE.png and FILE.pdf where the program rsvg-convert is on PATH. `verb` is named in the error.
void check_picture(const std::string& path, const std::string& verb);

/// Writes a picture in the format that the name of the file tells. Throws as check_picture, and
/// DataError if it cannot be written.
void write_picture(const std::string& path, const std::string& svg, const std::string& verb);

/// Runs a program of PATH with standard streams of this process and waits for it. Returns its exit
/// status; -1 if it could not be started or did not exit.
int run_tool(const std::vector<std::string>& command);

}  // namespace lockstep::launcher

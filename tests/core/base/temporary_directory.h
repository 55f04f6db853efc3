#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace lockstep::train {

/// Where tests put their files: TMPDIR if it is set; else memory, so that no fsync waits for a disk
/// (what a killed process has written stays there, too); the system's folder where memory is short.
inline std::filesystem::path parent_of_tests() {
  constexpr std::uintmax_t kEnough = std::uintmax_t{2} << 30;
  const std::filesystem::path memory = "/dev/shm";
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(memory, error);
  if (std::getenv("TMPDIR") == nullptr && !error && space.available >= kEnough) return memory;
  return std::filesystem::temp_directory_path();
}

/// A fresh folder for one test, removed with its contents by the destructor.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : TemporaryDirectory(parent_of_tests()) {}
  explicit TemporaryDirectory(const std::filesystem::path& parent) {
    std::string pattern = (parent / "lockstep-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void put_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string file_content(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Returns the message of the `ErrorType` that `action` throws, or "(nothing thrown)".
template <class ErrorType, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "(nothing thrown)";
}

/// EXPECT_TRUE(says(message, part)) fails with the whole message.
inline testing::AssertionResult says(const std::string& message, std::string_view part) {
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << '"' << message << "\" does not say \"" << part << '"';
}

}  // namespace lockstep::train
